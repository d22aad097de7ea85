"""The agent that is hosted in a recording: a line of JSON for each message."""

import json
import sys

SAID = {
    "task_assignment": ("finding", {"summary": "Usual terms.", "risk_score": 50, "recommendation": "negotiate"}),
    "question": ("disagreement", {"reasoning": "These are usual terms."}),
    "request": ("response", {"status": "success", "result": {"terms": "usual"}}),
    "group_query": ("info_update", {"content": "The tenant bears the tax."}),
}

for line in sys.stdin:
    said = SAID.get(json.loads(line)["message_type"], ())
    print(json.dumps(dict(zip(("message_type", "payload"), said))), flush=True)
