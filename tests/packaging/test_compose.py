"""The Compose file: its parts fit together. No Docker runs here."""

import os
import pathlib
import re
import subprocess

import yaml

HERE = pathlib.Path(__file__).parents[2] / "packaging" / "compose"
COMPOSE = yaml.safe_load((HERE / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]


def test_every_file_and_volume_and_service_exists():
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            known = (HERE / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
            assert known and target.startswith("/"), (name, volume)
        assert all(other in SERVICES for other in service.get("depends_on", [])), name
        assert "lanes" in service["networks"], name
        if "build" in service:
            context = HERE / service["build"]["context"]
            assert (context / service["build"]["dockerfile"]).exists(), name
        else:
            assert re.fullmatch(r"[\w/]+:v?\d+[\d.]*", service["image"]), name


def test_addresses_of_nginx_and_prometheus_are_those_of_the_replicas():
    replicas = [service for name, service in SERVICES.items() if name.startswith("replica-")]
    addresses = sorted(service["networks"]["lanes"]["ipv4_address"] + ":7717" for service in replicas)
    assert len(addresses) == 3
    nginx = (HERE / "../proxies/nginx.conf").read_text()
    assert sorted(re.findall(r"server (10[\d.]+:\d+) ", nginx)) == addresses
    prometheus = yaml.safe_load((HERE / "prometheus.yml").read_text())
    assert prometheus["scrape_configs"][0]["static_configs"][0]["targets"] == addresses


def test_prometheus_takes_its_configuration(tmp_path):
    text = (HERE / "prometheus.yml").read_text()
    (tmp_path / "token").write_text("id.secret")
    (tmp_path / "prometheus.yml").write_text(text.replace("/tokens/metrics", str(tmp_path / "token")))
    rules = HERE / "../prometheus/laneway.rules.yaml"
    (tmp_path / "laneway.rules.yaml").write_text(rules.read_text())
    command = ["promtool", "check", "config", "prometheus.yml"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_program_takes_the_commands_of_tokens_and_replicas(tmp_path):
    program = os.environ["LANEWAY_BINARY"]
    environment = {"PATH": f"{pathlib.Path(program).parent}:{os.environ['PATH']}"}
    script = SERVICES["tokens"]["entrypoint"][-1].replace("/tokens", str(tmp_path / "tokens"))
    script = script.replace("exec sleep infinity", "").replace("/tmp/done", str(tmp_path / "done"))
    (tmp_path / "tokens").mkdir()
    store = {"LANEWAY_STORE": str(tmp_path / "tokens")}
    made = subprocess.run(
        ["sh", "-ec", script], cwd=tmp_path, env=environment | store, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    assert all(re.fullmatch(r"\S+\.\S+\n", (tmp_path / "tokens" / name).read_text()) for name in ("admin", "metrics"))
    assert (tmp_path / "tokens/server/tokens.json").exists() and (tmp_path / "done").exists()
    configured = [program, "config", "check", "--config", str(HERE / "laneway.hcl")]
    assert subprocess.run(configured, cwd=tmp_path, env=environment, capture_output=True).returncode == 0
    replica = SERVICES["replica-1"]
    assert replica["command"][0] == "serve" and replica["entrypoint"][2].endswith('exec laneway "$$@"')
