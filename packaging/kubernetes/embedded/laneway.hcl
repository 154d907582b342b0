# The settings of the server. The store is on its volume.
lane "main" { max_concurrency = 8 }

agent "builder" { external = true }

server {
  drain_grace = "30s"
}
