url         = "http://laneway:7717"
token_file  = "/run/secrets/laneway/token"
lanes       = ["external"]
concurrency = 4
drain_grace = "5m"

handler "sort" { command = ["sort"] }
