//! stub
use zrt_asm::session::PAGE_TOKENS;
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KvFormat { #[default] F32 }
#[allow(missing_docs)]
impl KvFormat {
    pub fn row_bytes(self, row_elements: u32) -> u32 { row_elements * 4 }
    pub fn page_bytes(self, layers: u32, row_elements: u32) -> u64 {
        u64::from(self.row_bytes(row_elements)) * 2 * u64::from(PAGE_TOKENS) * u64::from(layers)
    }
    pub fn kv_write_kernel(self) -> &'static str { "kv_write_f32" }
    pub fn attention_kernel(self) -> &'static str { "attention_f32" }
}
