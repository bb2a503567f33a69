//! A server's loop over a session: prompts in, text out, several at once. Only the session's public calls are used.
//!
//! `cargo run --release -p zrt-engine --example server_loop [MODEL] < prompts`: one prompt per line; each line of the
//! output starts with the prompt's number. Without input it runs two prompts of its own.

use std::error::Error;
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::model::Model;
use zrt_engine::safetensors::open_model;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Handle, Request, Session, SessionError, SessionOptions};
use zrt_engine::tokenizer::Tokenizer;

const TOKENS_MAX: u32 = 24;
const CONTEXT: u32 = 256;
/// Maximum number of events taken with one call.
const EVENTS: usize = 32;
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

fn prompts() -> Vec<String> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return vec!["Once upon a time".into(), "The little fox".into()];
    }
    let lines: Vec<String> =
        stdin.lock().lines().map_while(Result::ok).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { vec!["Once upon a time".into(), "The little fox".into()] } else { lines }
}

fn main() -> Result<(), Box<dyn Error>> {
    let repository = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tales-qwen3-Q4_0.gguf"));
    let path = std::env::args_os().nth(1).map_or(repository, PathBuf::from);
    let gguf = Arc::new(open_model(&path)?);
    let tokenizer = Tokenizer::from_gguf(&gguf)?;
    let model = Model::load(gguf)?;
    let device = zrt_bringup::open(DeviceChoice::from_environment()?, &OpenOptions::default())?;
    eprintln!("{} on {}", path.display(), device.name());
    let options = SessionOptions { context: CONTEXT.min(model.config.context), ..SessionOptions::default() };
    let mut session = Session::open(device, &model, &options, &mut |_, _| {})?;

    let prompts: Vec<Vec<u32>> = prompts().iter().map(|prompt| tokenizer.encode(prompt)).collect();
    let stops: Vec<u32> =
        (0..tokenizer.token_count() as u32).filter(|id| tokenizer.is_end(*id)).take(8).collect();
    let mut waiting = prompts.iter().enumerate().peekable();
    let mut running: Vec<(usize, Handle, Vec<u32>)> = Vec::new();
    let mut events = [Event::default(); EVENTS];
    let mut out = std::io::stdout().lock();
    while waiting.peek().is_some() || !running.is_empty() {
        // Submit as many as the session accepts.
        while let Some((number, prompt)) = waiting.peek() {
            let sampling = SamplingOptions {
                temperature: 0.7,
                top_k: 40,
                seed: *number as u64,
                ..SamplingOptions::default()
            };
            let request = Request { prompt, tokens_max: TOKENS_MAX, sampling, stops: &stops };
            match session.submit(&request) {
                Ok(handle) => running.push((*number, handle, Vec::new())),
                Err(SessionError::Full { .. }) => break,
                Err(error) => return Err(error.into()),
            }
            waiting.next();
        }
        let count = session.poll(&mut events)?;
        for event in &events[..count] {
            match event {
                Event::Token { handle, token, .. } => {
                    running.iter_mut().filter(|one| one.1 == *handle).for_each(|one| one.2.push(*token));
                }
                Event::Finished { handle, reason } => {
                    if let Some(at) = running.iter().position(|one| one.1 == *handle) {
                        let (number, _, tokens) = running.swap_remove(at);
                        writeln!(out, "{number}: {} [{reason:?}]", tokenizer.decode(&tokens))?;
                    }
                }
                Event::Parked { .. } => {}
            }
        }
        if count == 0 {
            std::thread::yield_now();
        }
    }
    session.close(CLOSE_DEADLINE)?;
    Ok(())
}
