#!/usr/bin/env python3
"""Writes the dashboards of the chart (helm/concord/files/dashboards) from the table below. --check says whether they are up to date.

Every query is run against a real Prometheus that has scraped a real installation (tests/test_monitoring.py).
"""

import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "helm" / "concord" / "files" / "dashboards"


# What the board is told to show; "All" finds series without the label, too, as there are outside Kubernetes.
NAMESPACE = 'namespace=~"$namespace"'


def chosen(expression):
    """The query for the chosen namespaces alone: of two installations each has its own."""
    return re.sub(r"\b(up|concord_\w+)\b(\{)?", lambda found: f"{found[1]}{{{NAMESPACE}{',' if found[2] else '}'}", expression)


def rate(metric, by="", more=""):
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{more}[$__rate_interval]))"


def quantile(q, metric, by=""):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, sum by ({labels}) (rate({metric}_bucket[$__rate_interval])))"


def steps(aggregate, outcomes):
    # Not increase(), which does not see a counter that appears: what happens once a day would never be shown.
    return f'sum by (outcome) (concord_steps_total{{aggregate="{aggregate}",outcome=~"{outcomes}"}})'


# Of each dashboard the title and its panels: title, unit, kind, and queries with what they are called.
DASHBOARDS = {
    "overview": ("Concord: overview", [
        ("Replicas that are there", "short", "stat", [('sum by (job) (up{job=~"coordinator|conflict-detector|debate-facilitator|escalation-timer|agent-adapter"})', "{{job}}")]),
        ("Replicas that the broker answers", "short", "stat", [("sum by (job) (concord_broker_up)", "{{job}}")]),
        ("Deliveries a second", "ops", "timeseries", [(rate("concord_deliveries_total", "job"), "{{job}}")]),
        ("Deliveries that did not end well, a second", "ops", "timeseries", [(rate("concord_deliveries_total", "job, verdict", '{verdict!="acked"}'), "{{job}} {{verdict}}")]),
        ("How long a delivery takes", "s", "timeseries", [(quantile("0.5", "concord_handling_seconds", "job"), "{{job}} half"), (quantile("0.99", "concord_handling_seconds", "job"), "{{job}} 99 of 100")]),
        ("How full the streams with a limit are", "percentunit", "timeseries", [("max by (stream) (concord_stream_fill_ratio) or vector(0)", "{{stream}}")]),
        ("Streams that the broker does not store in", "short", "stat", [("sum(max by (stream) (concord_stream_refuses))", "streams")]),
        ("Messages that wait, by consumer", "short", "timeseries", [("topk(10, max by (consumer) (concord_consumer_lag))", "{{consumer}}")]),
        ("Dead letters", "short", "stat", [("sum by (reason) (concord_dead_total) or vector(0)", "{{reason}}")]),
        ("Messages over a sender's limit, a second", "ops", "timeseries", [(rate("concord_rate_limited_total", "consumer") + " or vector(0)", "{{consumer}}")]),
    ]),
    "cases": ("Concord: cases", [
        ("Cases, since the replicas began", "short", "stat", [(steps("case", "opened|decided|cancelled"), "{{outcome}}")]),
        ("Cases opened and decided a second", "ops", "timeseries", [(rate("concord_steps_total", "outcome", '{aggregate="case",outcome=~"opened|decided|cancelled"}'), "{{outcome}}")]),
        ("Debates, since the replicas began", "short", "stat", [(steps("debate", "opened|resolved|escalated|fell_back"), "{{outcome}}")]),
        ("Debates a second", "ops", "timeseries", [(rate("concord_steps_total", "outcome", '{aggregate="debate",outcome=~"opened|answered|round_closed|resolved|escalated"}'), "{{outcome}}")]),
        ("Requests between agents a second", "ops", "timeseries", [(rate("concord_steps_total", "outcome", '{aggregate="request"}') + " or vector(0)", "{{outcome}}")]),
        ("What was decided not to store, a second", "ops", "timeseries", [(rate("concord_steps_total", "aggregate, outcome", '{outcome=~"ignored.*|rejected"}') + " or vector(0)", "{{aggregate}} {{outcome}}")]),
    ]),
    "ladder-and-people": ("Concord: ladder and people", [
        ("Steps of the ladder, since the replicas began", "short", "stat", [(steps("debate", "escalated|fell_back|awaits_gate|reminded|ruling_set_aside") + " or vector(0)", "{{outcome}}")]),
        ("The queue of people, since the replicas began", "short", "stat", [('sum by (outcome) (concord_steps_total{aggregate="queue"}) or vector(0)', "{{outcome}}")]),
        ("Reviews and gates, since the replicas began", "short", "stat", [(steps("case", "review_recorded|gate_reviewed|gate_passed|decision_changed") + " or vector(0)", "{{outcome}}")]),
        ("Open deadlines", "short", "timeseries", [("max(concord_deadlines_open)", "open")]),
        ("How late deadlines are noticed", "s", "timeseries", [(quantile("0.99", "concord_deadline_lateness_seconds"), "99 of 100")]),
        ("Deadlines that the watchdog fired", "short", "stat", [("sum(concord_watchdog_fired_total)", "fired")]),
        ("Deadlines applied over what was not read", "short", "stat", [("sum(concord_deadlines_unread_total)", "applied")]),
        ("Notices to people", "short", "stat", [("sum by (channel, result) (concord_notifications_total) or vector(0)", "{{channel}} {{result}}")]),
    ]),
    "hosted-agents": ("Concord: hosted agents", [
        ("Calls a second, by result", "ops", "timeseries", [(rate("concord_hosted_calls_total", "agent, result"), "{{agent}} {{result}}")]),
        ("Circuit breakers (0 closed, 1 trying, 2 open)", "short", "timeseries", [("max by (agent) (concord_breaker_standing)", "{{agent}}")]),
        ("Messages that wait for an agent", "short", "timeseries", [("sum by (agent) (concord_hosted_waiting)", "{{agent}}")]),
        # The label with the agent's name is called so.
        ("Programs started", "short", "stat", [("sum by (reason) (concord_program_starts_total)", "{{reason}}")]),
        ("Budgets, requests a second", "ops", "timeseries", [(rate("concord_budgets_total", "provider, result") + " or vector(0)", "{{provider}} {{result}}")]),
        ("Whom messages wake, a second", "ops", "timeseries", [(rate("concord_wakes_total", "outcome, reason") + " or vector(0)", "{{outcome}} {{reason}}")]),
    ]),
    "broker": ("Concord: the broker as the services see it", [
        ("Replicas that it answers", "short", "timeseries", [("sum by (job) (concord_broker_up)", "{{job}}")]),
        ("Messages that wait", "short", "timeseries", [("sum(max by (consumer) (concord_consumer_lag))", "all consumers")]),
        ("Appends that another process was ahead of, a second", "ops", "timeseries", [(rate("concord_step_conflicts_total", "job"), "{{job}}")]),
        ("Aggregates read from the broker, a second", "ops", "timeseries", [(rate("concord_step_reloads_total", "job"), "{{job}}")]),
        ("Deliveries handed to another replica, a second", "ops", "timeseries", [(rate("concord_handed_off_total", "job"), "{{job}}")]),
        ("Pauses because a sender floods", "short", "timeseries", [("sum by (job) (increase(concord_held_back_total[$__rate_interval]))", "{{job}}")]),
        ("What stood among events and was none", "short", "stat", [("sum by (consumer) (concord_foreign_total) or vector(0)", "{{consumer}}")]),
    ]),
}


def panel(number, title, unit, kind, queries):
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value"} if kind == "stat" else {
        "legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    return {
        "id": number + 1, "type": kind, "title": title, "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []}, "options": options,
        "targets": [{"refId": chr(65 + i), "expr": chosen(expression), "legendFormat": legend} for i, (expression, legend) in enumerate(queries)],
    }


def dashboard(name):
    title, panels = DASHBOARDS[name]
    return {
        "uid": f"concord-{name}", "title": title, "tags": ["concord"], "schemaVersion": 39, "version": 1, "editable": True,
        "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
            # The chart puts its own namespace in the place of "All".
            {"name": "namespace", "type": "query", "label": "Namespace", "datasource": {"type": "prometheus", "uid": "${datasource}"},
             "query": {"query": "label_values(concord_broker_up, namespace)", "refId": "namespace"}, "refresh": 2, "sort": 1,
             "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}},
        ]},
        "panels": [panel(number, *row) for number, row in enumerate(panels)],
    }


def queries():
    """Every query with the dashboard and panel that it is of."""
    for name, (_, panels) in DASHBOARDS.items():
        for title, _, _, rows in panels:
            for expression, _ in rows:
                yield name, title, chosen(expression)


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    stale = []
    for name in DASHBOARDS:
        text = json.dumps(dashboard(name), indent=1) + "\n"
        path = FOLDER / f"{name}.json"
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text() != text:
                stale.append(str(path))
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"run deploy/observability/dashboards.py: not up to date are {', '.join(stale)}")


if __name__ == "__main__":
    main()
