//! The end of a process: SIGTERM and Ctrl-C ask for it, everyone under way hears of it.

use tokio_util::sync::CancellationToken;

/// A token that is cancelled by SIGTERM or SIGINT.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let token = CancellationToken::new();
    let asked = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("Asked to stop; draining.");
        asked.cancel();
    });
    Ok(token)
}
