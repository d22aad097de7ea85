//! A single-threaded executor that runs tasks in the order in which they were woken, and can kill a process.
//!
//! A task belongs to one incarnation of a process. To kill the process is to drop its tasks at the await point where they
//! happen to be, as a power failure does.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One incarnation of a replica: a process from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Incarnation {
    /// Which replica.
    pub(crate) replica: usize,
    /// How often it was started before.
    pub(crate) number: u32,
}

/// Tasks that can go on, in the order in which that became so.
#[derive(Debug, Default)]
struct Ready(Mutex<VecDeque<u64>>);

impl Ready {
    fn push(&self, task: u64) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_back(task);
    }

    fn pop(&self) -> Option<u64> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    }
}

struct WakeTask {
    task: u64,
    ready: Arc<Ready>,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        self.ready.push(self.task);
    }
}

/// The tasks of all processes.
#[derive(Default)]
pub(crate) struct Executor {
    tasks: BTreeMap<u64, (Incarnation, Waker, Task)>,
    ready: Arc<Ready>,
    next: u64,
}

impl Executor {
    /// Begins a task; it runs at the next [`Self::run`].
    pub(crate) fn spawn(
        &mut self,
        incarnation: Incarnation,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        let task = self.next;
        self.next += 1;
        let waker = Waker::from(Arc::new(WakeTask {
            task,
            ready: Arc::clone(&self.ready),
        }));
        self.tasks
            .insert(task, (incarnation, waker, Box::pin(future)));
        self.ready.push(task);
    }

    /// Runs until every task waits for the world.
    pub(crate) fn run(&mut self) {
        while let Some(task) = self.ready.pop() {
            // A task that is gone may still have been woken.
            let Some((_, waker, future)) = self.tasks.get_mut(&task) else {
                continue;
            };
            let waker = waker.clone();
            if future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_ready()
            {
                self.tasks.remove(&task);
            }
        }
    }

    /// Drops whatever a process was doing.
    pub(crate) fn kill(&mut self, incarnation: Incarnation) {
        self.tasks.retain(|_, (owner, _, _)| *owner != incarnation);
    }

    /// True when no task is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }
}
