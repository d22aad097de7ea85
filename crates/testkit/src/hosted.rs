//! An agent that the adapter hosts: a program on standard input and output.

use concord_installation::Plan;

/// One JSON message a line, and one line for each. It needs nothing but python3.
const PROGRAM: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["message_type"] == "task_assignment":
        finding = {"summary": "Said by a program.", "risk_score": 50, "recommendation": "negotiate"}
        said = {"message_type": "finding", "payload": finding, "metadata": {"confidence": 0.65}}
    elif message["message_type"] == "question":
        said = {"message_type": "disagreement", "payload": {"reasoning": "A program keeps its position."}}
    else:
        said = {}
    print(json.dumps(said), flush=True)
"#;

/// The plan with an agent `hosted`, which has a finding for every task and keeps its position in every debate.
pub fn with_hosted_agent(plan: Plan) -> Plan {
    let program = plan.directory.join("hosted.py");
    std::fs::write(&program, PROGRAM).expect("the program is written");
    let hosted = format!(
        "[[service.agents]]\nagent_id = \"hosted\"\ncommand = [\"python3\", {:?}]\ntimeout_ms = 60000\n",
        program.display().to_string()
    );
    with_adapter_settings(plan, &hosted)
}

/// The plan with an agent adapter that reads these settings (TOML) from a file.
///
/// # Panics
/// When the file cannot be written.
pub fn with_adapter_settings(mut plan: Plan, settings: &str) -> Plan {
    let file = plan.directory.join("adapter.toml");
    std::fs::write(&file, settings).expect("the settings are written");
    plan.adapter_config = Some(file);
    plan
}
