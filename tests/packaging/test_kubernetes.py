"""The manifests, rendered by kubectl and checked against the schemas of Kubernetes. No cluster runs here."""

import copy
import os
import pathlib
import re
import subprocess

import kubernetes_validate
import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
MANIFESTS = ROOT / "packaging" / "kubernetes"
OVERLAYS = ["shared", "embedded", "production"]
# The oldest version that has every field in use, and the newest with schemas here.
VERSIONS = ["1.25", "1.37"]
# Kubernetes has no schemas of these: the programs that bring them do.
FOREIGN = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}


def rendered(overlay):
    command = ["kubectl", "kustomize", str(MANIFESTS / overlay)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return list(yaml.safe_load_all(made.stdout))


def only(documents, kind, name="laneway"):
    found = [one for one in documents if one["kind"] == kind and one["metadata"]["name"] == name]
    assert len(found) == 1, (kind, name)
    return found[0]


def pods(documents):
    return [one for one in documents if one["kind"] in ("Deployment", "StatefulSet")]


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()
    return int(number) * {"s": 1, "m": 60}[unit]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_each_resource_fits_the_schema_of_its_kind(overlay, version):
    checked = 0
    for document in rendered(overlay):
        assert document["metadata"]["namespace"] == "laneway", document["metadata"]
        if document["kind"] not in FOREIGN:
            kubernetes_validate.validate(document, version, strict=True)
            checked += 1
    assert checked >= 6


def test_a_wrong_field_would_be_noticed():
    wrong = copy.deepcopy(only(rendered("shared"), "Deployment"))
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_selectors_find_the_pods_and_names_exist(overlay):
    documents = rendered(overlay)
    server = next(one for one in pods(documents) if one["metadata"]["name"] == "laneway")
    labels = server["spec"]["template"]["metadata"]["labels"].items()
    selectors = [
        server["spec"]["selector"]["matchLabels"],
        only(documents, "Service")["spec"]["selector"],
        only(documents, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        only(documents, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector.items() <= labels for selector in selectors), selectors
    maps = {one["metadata"]["name"] for one in documents if one["kind"] == "ConfigMap"}
    for workload in pods(documents):
        spec = workload["spec"]["template"]["spec"]
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        claims = {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
        for container in spec["containers"] + spec.get("initContainers", []):
            assert container["image"] == "registry.example/laneway:0.1.0"
            for mount in container["volumeMounts"]:
                assert mount["name"] in volumes.keys() | claims, mount
        for volume in volumes.values():
            assert volume.get("configMap", {"name": next(iter(maps))})["name"] in maps, volume
    service = only(documents, "Service")["spec"]["ports"][0]
    container = server["spec"]["template"]["spec"]["containers"][0]
    assert service["targetPort"] in [port["name"] for port in container["ports"]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_server_has_time_to_drain_and_probes_that_exist(overlay):
    documents = rendered(overlay)
    server = next(one for one in pods(documents) if one["metadata"]["name"] == "laneway")
    spec = server["spec"]["template"]["spec"]
    container = spec["containers"][0]
    config = next(
        one["data"]["laneway.hcl"] for one in documents if one["kind"] == "ConfigMap" and "laneway.hcl" in one["data"]
    )
    grace = seconds(re.search(r'drain_grace = "(\w+)"', config).group(1))
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert spec["terminationGracePeriodSeconds"] >= grace + pause + 10
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    openapi = (ROOT / "crates/server/src/http/routes/admin/status.rs").read_text()
    assert all(f'path = "{probe["path"]}"' in openapi and probe["port"] == "http" for probe in probes.values())
    # A restart does not bring a store back.
    assert probes["livenessProbe"]["path"] == "/healthz" and probes["readinessProbe"]["path"] == "/readyz"


@pytest.mark.parametrize("file", ["shared/laneway.hcl", "embedded/laneway.hcl", "workers/worker.hcl"])
def test_the_program_takes_the_configuration(file, tmp_path):
    verb = ["config", "check"] if file.endswith("laneway.hcl") else ["worker", "--check"]
    command = [os.environ["LANEWAY_BINARY"], *verb, "--config", str(MANIFESTS / file)]
    text = (MANIFESTS / file).read_text()
    if "token_file" in text:
        (tmp_path / "token").write_text("id.secret")
        (tmp_path / "worker.hcl").write_text(text.replace("/run/secrets/laneway/token", str(tmp_path / "token")))
        command[-1] = str(tmp_path / "worker.hcl")
    checked = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert checked.returncode == 0 and "warning" not in checked.stderr, checked.stdout + checked.stderr


def test_workers_end_after_their_tasks_and_scale_by_metrics_that_exist():
    documents = rendered("production")
    worker = only(documents, "Deployment", "laneway-worker")
    config = (MANIFESTS / "workers/worker.hcl").read_text()
    grace = seconds(re.search(r'drain_grace = "(\w+)"', config).group(1))
    assert worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > grace
    # A number here would undo what KEDA sets, at each apply.
    assert "replicas" not in worker["spec"]
    scaled = only(documents, "ScaledObject", "laneway-worker")["spec"]
    assert scaled["scaleTargetRef"]["name"] == worker["metadata"]["name"]
    trigger = scaled["triggers"][0]["metadata"]
    assert trigger["threshold"] == re.search(r"concurrency = (\d+)", config).group(1)
    known = (ROOT / "docs/reference/metrics.md").read_text()
    names = re.findall(r"laneway_\w+", trigger["query"])
    assert names and all(f"`{name}{{" in known for name in names), names


def test_the_rules_of_the_operator_are_the_packaged_rules_and_its_monitor_finds_the_service():
    documents = rendered("production")
    packaged = yaml.safe_load((ROOT / "packaging/prometheus/laneway.rules.yaml").read_text())
    assert only(documents, "PrometheusRule")["spec"] == packaged
    monitor, service = only(documents, "ServiceMonitor")["spec"], only(documents, "Service")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["endpoints"][0]["port"] in [port["name"] for port in service["spec"]["ports"]]
    # The rules name this label.
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "laneway"


def test_the_ingress_leads_to_the_service():
    documents = rendered("production")
    backend = only(documents, "Ingress")["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    service = only(documents, "Service")
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] in [port["name"] for port in service["spec"]["ports"]]
