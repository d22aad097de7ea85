use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn parse(arguments: &[&str]) -> Result<BenchArgs, String> {
    let line = ["bench"].iter().chain(arguments);
    let parsed = Command::try_parse_from(line).map_err(|error| error.to_string());
    parsed.map(|command| command.bench)
}

#[test]
fn a_measurement_of_a_limit_is_no_result() {
    assert_eq!(result(0).unwrap(), 0);
    let failure = result(7).unwrap_err();
    assert_eq!(failure.code(), 1);
    assert!(failure.to_string().contains("intervened 7 times"));
}

#[test]
fn the_replicas_are_numbers_of_processes() {
    let rust = ["--agents", "rust", "--replicas"];
    let args = parse(&[&rust[..], &["1,2,4", "--cases", "9"]].concat()).unwrap();
    let options = args.options(Path::new("/nowhere")).unwrap();
    assert_eq!(options.replicas, [1, 2, 4]);
    assert_eq!((options.cases, options.replicas_cases), (9, 9));
    assert!(!options.everything && options.concurrency.is_empty());
    for wrong in ["0", "1,0", "", "two", "33", "1;2"] {
        let error = parse(&[&rust[..], &[wrong]].concat()).unwrap_err();
        assert!(error.contains("--replicas"), "{error}");
    }
}

#[test]
fn agents_are_a_kind_for_cases_and_a_number_for_tasks() {
    let load = |arguments: &[&str]| parse(arguments).unwrap().task_load();
    let given = load(&["--tasks", "70", "--agents", "1000"])
        .unwrap()
        .unwrap();
    assert_eq!(
        (given.tasks, given.agents, given.concurrency),
        (70, 1_000, 32)
    );
    let usual = load(&["--tasks"]).unwrap().unwrap();
    assert_eq!((usual.tasks, usual.agents), (500, 100));
    assert!(load(&[]).unwrap().is_none());
    assert_eq!(
        load(&["--tasks", "--agents", "rust"]).unwrap_err().code(),
        2
    );
    let of_cases = parse(&["--agents", "7"]).unwrap();
    assert_eq!(
        of_cases.options(Path::new("/nowhere")).unwrap_err().code(),
        2
    );
    for wrong in [["--agents", "0"], ["--agents", "ruby"], ["--tasks", "0"]] {
        assert!(parse(&wrong).is_err(), "{wrong:?}");
    }
    assert!(parse(&["--tasks", "5", "--long"]).is_err());
}

#[test]
fn many_cases_run_on_one_installation() {
    let long = |more: &[&str]| {
        let args = parse(&[&["--long", "--agents", "rust"], more].concat()).unwrap();
        let options = args.options(Path::new("/nowhere")).unwrap();
        args.long(&options)
    };
    let load = long(&[]).unwrap();
    assert_eq!((load.total, load.replicas), (100_000, 1));
    let load = long(&["--cases", "70", "--replicas", "2"]).unwrap();
    assert_eq!((load.total, load.replicas), (70, 2));
    assert_eq!(long(&["--replicas", "1,2"]).unwrap_err().code(), 2);
    assert_eq!(long(&["--cases", "9"]).unwrap_err().code(), 2);
    assert!(parse(&["--long", "--flood"]).is_err());
    assert!(parse(&["--flood", "--replicas", "1"]).is_err());
}
