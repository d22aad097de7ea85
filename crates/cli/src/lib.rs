//! The `concord` command.
