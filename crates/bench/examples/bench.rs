//! For trying.
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let dir = std::env::temp_dir().join(format!("concord-bench-{}", std::process::id()));
    let mut o = concord_bench::Options::new(&dir);
    o.binaries = std::env::args().nth(1).map(Into::into);
    let r = concord_bench::run(&o, |p| eprintln!("{p}")).await;
    let _ = std::fs::remove_dir_all(&dir);
    println!("{}", serde_json::to_string_pretty(&r?)?);
    Ok(())
}
