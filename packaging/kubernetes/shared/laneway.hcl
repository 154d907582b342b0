# The settings of all replicas. The store is in the secret laneway-store.
lane "main" { max_concurrency = 8 }

agent "builder" { external = true }

server {
  drain_grace = "30s"
}
