//! A driver does not keep what was lent to it for a call.
#![forbid(unsafe_code)]
use zrt_kmd::UserPointer;

struct Driver {
    later: Option<UserPointer<'static>>,
}

impl Driver {
    fn ioctl(&mut self, argument: UserPointer<'_>) {
        self.later = Some(argument);
    }
}

fn main() {
    let _ = Driver::ioctl;
}
