//! Core, priority and interruption of the thread that sends.

use std::sync::Once;

/// The scheduling of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// `SCHED_FIFO` with this priority.
    Fifo(u8),
    /// The ordinary scheduler with this nice value.
    Nice(i8),
}

/// A thread that can be woken out of a system call.
#[derive(Debug, Clone, Copy)]
pub struct Thread {
    process: libc::pid_t,
    thread: libc::pid_t,
}

fn wake_signal() -> libc::c_int {
    libc::SIGRTMAX() - 2
}

extern "C" fn nothing(_signal: libc::c_int) {}

impl Thread {
    /// The calling thread, which from now on is interrupted only by [`Thread::wake`].
    #[must_use]
    pub fn shielded() -> Self {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: the handler does nothing, so it may run anywhere; without SA_RESTART a call ends with EINTR.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
                libc::sigaction(wake_signal(), &raw const action, std::ptr::null_mut());
            }
        });
        // SAFETY: the set is initialised before it is used; only this thread's mask changes.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigdelset(&raw mut all, wake_signal());
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        }
        // SAFETY: both calls only return numbers. The second has a name of its own only since glibc 2.30.
        unsafe { Self { process: libc::getpid(), thread: libc::syscall(libc::SYS_gettid) as libc::pid_t } }
    }

    /// Ends the system call that the thread is in.
    pub fn wake(self) {
        // SAFETY: a thread id that is gone or another process's is refused by the kernel, for the process is named too.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, wake_signal()) };
    }
}

/// Binds the calling thread to a core; `false` if that is not allowed.
#[must_use]
pub fn pin(cpu: usize) -> bool {
    // SAFETY: the set is plain memory, and CPU_SET checks its bounds.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) == 0
    }
}

/// Keeps the calling thread off a core until it is dropped: beside a real-time thread it would wait for up to a second.
#[derive(Debug)]
pub struct AwayFrom {
    before: Option<libc::cpu_set_t>,
}

impl AwayFrom {
    /// Leaves the core, if there is one and the thread may run on another.
    #[must_use]
    pub fn core(cpu: Option<usize>) -> Self {
        let size = size_of::<libc::cpu_set_t>();
        // SAFETY: the sets are plain memory, and the macros check their bounds.
        let before = cpu.and_then(|cpu| unsafe {
            let mut before: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size, &raw mut before) != 0 {
                return None;
            }
            let mut others = before;
            libc::CPU_CLR(cpu, &mut others);
            let moved = libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, size, &raw const others) == 0;
            moved.then_some(before)
        });
        Self { before }
    }
}

impl Drop for AwayFrom {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: the set outlives the call.
            unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), before) };
        }
    }
}

/// Gives the calling thread a real-time priority, or if that is not allowed the best nice value that is.
#[must_use]
pub fn prioritise(priority: u8) -> Scheduling {
    if priority > 0 {
        let parameter = libc::sched_param { sched_priority: i32::from(priority) };
        // SAFETY: the structure outlives the call.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) } == 0 {
            return Scheduling::Fifo(priority);
        }
    }
    for nice in [-20, -10] {
        // SAFETY: no pointers; 0 names the calling thread.
        if priority > 0 && unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) } == 0 {
            return Scheduling::Nice(nice as i8);
        }
    }
    Scheduling::Nice(0)
}

/// The real-time priority of a thread that has to go before one of this priority, which may never sleep; 0 stays 0.
#[must_use]
pub fn above(priority: u8) -> u8 {
    if priority > 0 { priority.saturating_add(1).min(99) } else { 0 }
}

/// How often the scheduler took the core from the calling thread.
#[must_use]
pub fn preemptions() -> u64 {
    // SAFETY: plain memory, written by the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw as u64
    }
}
