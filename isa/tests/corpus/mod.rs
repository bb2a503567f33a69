//! The golden corpus: words and llvm-mc's text, `-` for words that are no instruction.

pub fn lines() -> Vec<(Vec<u32>, &'static str)> {
    include_str!("../golden.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (words, text) = line.split_once('\t').unwrap();
            (words.split(' ').map(|word| u32::from_str_radix(word, 16).unwrap()).collect(), text)
        })
        .collect()
}
