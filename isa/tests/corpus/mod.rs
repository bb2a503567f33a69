//! The golden corpus of each wave size: words and llvm-mc's text, `-` for words that are no instruction.

use zrt_isa::resources::WaveSize;

pub fn lines(wave_size: WaveSize) -> Vec<(Vec<u32>, &'static str)> {
    let text = match wave_size {
        WaveSize::Wave32 => include_str!("../golden.txt"),
        WaveSize::Wave64 => include_str!("../golden64.txt"),
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (words, text) = line.split_once('\t').unwrap();
            (words.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect(), text)
        })
        .collect()
}
