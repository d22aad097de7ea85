//! Log lines that say what they seem to say: they hold subjects, ids and texts of whoever may publish. Escapes of a terminal, marks of direction
//! and line breaks in them are written as escapes, whoever has logged them.

use std::fmt;
use std::io::{self, Write};

use concord_domain::text::{visible_json, visible_line};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FormatFields, MakeWriter};

/// The fields of a line of text.
pub(super) struct Fields;

impl<'writer> FormatFields<'writer> for Fields {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        let mut plain = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut plain), fields)?;
        writer.write_str(&visible_line(&plain))
    }
}

/// Where lines of JSON are written, one at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Json<W>(pub(super) W);

impl<'writer, W: MakeWriter<'writer>> MakeWriter<'writer> for Json<W> {
    type Writer = Json<W::Writer>;

    fn make_writer(&'writer self) -> Self::Writer {
        Json(self.0.make_writer())
    }
}

impl<W: Write> Write for Json<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let visible = visible_json(&String::from_utf8_lossy(line));
        self.0.write_all(visible.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::{Layer, Registry};

    use super::*;

    /// What is written, to be read afterwards.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(layer: impl FnOnce(Kept) -> Box<dyn Layer<Registry> + Send + Sync>) -> String {
        let kept = Kept::default();
        let subscriber = tracing_subscriber::registry().with(layer(kept.clone()));
        tracing::subscriber::with_default(subscriber, || {
            let subject =
                "concord.v1.msg.c\u{1b}[31mRED\u{7}.mal\u{202e}\u{9b}.coordinator.request";
            let span = tracing::info_span!("handle", %subject);
            span.in_scope(|| tracing::info!(%subject, error = "a\nb", "Refused {subject}."));
        });
        let lines = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(lines.contains("RED") && lines.ends_with('\n'), "{lines:?}");
        lines.trim_end().to_owned()
    }

    #[test]
    fn no_line_has_what_a_terminal_obeys_or_a_reader_does_not_see() {
        let text = logged(|kept| super::super::lines_of_text(move || kept.clone(), false));
        let json = logged(|kept| super::super::lines_of_json(move || kept.clone()));
        for line in [&text, &json] {
            let seen = line
                .chars()
                .find(|c| concord_domain::text::is_deceptive(*c));
            assert_eq!(seen, None, "{line:?}");
        }
        assert!(
            text.contains(r"c\u{1b}[31mRED\u{7}.mal\u{202e}\u{9b}.co"),
            "{text}"
        );
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let subject = read["fields"]["subject"].as_str().unwrap();
        assert!(subject.contains("mal\u{202e}"), "it is read as it was");
    }
}
