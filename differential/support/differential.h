/* What generated programs are made of: operations that are defined for every operand, memory, lanes of a wave.
 *
 * The same text is compiled for the device, where a work-item is a lane, and for the host, where a kernel runs its
 * phases in loops over the lanes of a workgroup. Only the parts below __AMDGCN__ differ: the host's are written from
 * the instruction set reference. The command line defines WAVE (lanes of a wave), IN_BYTES and ITEMS (powers of two).
 *
 * NaNs are one class: their bits are never looked at before they became the canonical one. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long i64;
typedef unsigned long u64;
typedef _Float16 f16;
typedef float f32;
typedef double f64;
typedef u32 u32x4 __attribute__((vector_size(16)));
typedef u16 u16x2 __attribute__((vector_size(4)));
typedef short i16x2 __attribute__((vector_size(4)));
typedef f16 f16x2 __attribute__((vector_size(4)));

enum { GROUP = 64, GROUPS = ITEMS / GROUP, OUT_BYTES = 256, LDS_BYTES = 8 * GROUP };
/* Bytes of an item's output behind the values of its variables, free for stores inside a program. */
enum { PATCH_AT = 128, PATCH_BYTES = 128 };

#define FN static inline __attribute__((always_inline))
#ifdef __AMDGCN__
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))
#else
#define GLOBAL
#define SHARED
#endif

/* What a compiler shall know nothing of. */
#ifdef __AMDGCN__
#define HIDE(a) __asm__("" : "+v"(a))
#else
#define HIDE(a)
#endif

/* ---- integers ---- */

/* clang 19 takes the unsigned remainder of a sign-extended 32-bit value by a small constant for one of 32 bits. */
#if __clang_major__ < 20
#define HIDE_WIDTH(T, a, BITS)                                                                                      \
    if (BITS == 64) {                                                                                               \
        u64 wide = (u64)a;                                                                                          \
        HIDE(wide);                                                                                                 \
        a = (T)wide;                                                                                                \
    }
#else
#define HIDE_WIDTH(T, a, BITS)
#endif
/* clang 19 saturates an operand that is narrower than int as the int that it is promoted to. */
#define IS_PROMOTED(BITS) (BITS < 32 && __clang_major__ < 20)
#define INTEGER(T, U, BITS)                                                                                         \
    FN T add_##T(T a, T b) { return (T)((U)a + (U)b); }                                                             \
    FN T sub_##T(T a, T b) { return (T)((U)a - (U)b); }                                                             \
    FN T mul_##T(T a, T b) { return (T)((U)a * (U)b); }                                                             \
    FN T and_##T(T a, T b) { return (T)(a & b); }                                                                   \
    FN T or_##T(T a, T b) { return (T)(a | b); }                                                                    \
    FN T xor_##T(T a, T b) { return (T)(a ^ b); }                                                                   \
    FN T not_##T(T a) { return (T)~a; }                                                                             \
    FN T neg_##T(T a) { return (T)((U)0 - (U)a); }                                                                  \
    FN T shl_##T(T a, u32 n) { return (T)((U)a << (n & (BITS - 1))); }                                              \
    FN T shr_##T(T a, u32 n) { return (T)(a >> (n & (BITS - 1))); }                                                 \
    FN T min_##T(T a, T b) { return a < b ? a : b; }                                                                \
    FN T max_##T(T a, T b) { return a < b ? b : a; }                                                                \
    FN T select_##T(u32 c, T a, T b) { return c & 1 ? a : b; }                                                      \
    FN T addsat_##T(T a, T b) {                                                                                     \
        if (IS_PROMOTED(BITS)) return (U)a + b > (T)-1 ? (T)-1 : (T)(a + b);                                        \
        return __builtin_elementwise_add_sat(a, b);                                                                 \
    }                                                                                                               \
    FN T subsat_##T(T a, T b) {                                                                                     \
        if (IS_PROMOTED(BITS)) return a < b ? 0 : (T)(a - b);                                                       \
        return __builtin_elementwise_sub_sat(a, b);                                                                 \
    }                                                                                                               \
    FN u32 eq_##T(T a, T b) { return a == b; }                                                                      \
    FN u32 lt_##T(T a, T b) { return a < b; }                                                                       \
    FN u32 le_##T(T a, T b) { return a <= b; }                                                                      \
    FN T div_##T(T a, T b) {                                                                                        \
        if (b == 0) return a;                                                                                       \
        if ((T)-1 < 0 && b == (T)-1) return neg_##T(a);                                                             \
        HIDE_WIDTH(T, a, BITS)                                                                                      \
        return (T)(a / b);                                                                                          \
    }                                                                                                               \
    FN T rem_##T(T a, T b) {                                                                                        \
        if (b == 0) return a;                                                                                       \
        if ((T)-1 < 0 && b == (T)-1) return 0;                                                                      \
        HIDE_WIDTH(T, a, BITS)                                                                                      \
        return (T)(a % b);                                                                                          \
    }
INTEGER(u8, u32, 8)
INTEGER(u16, u32, 16)
INTEGER(i32, u32, 32)
INTEGER(u32, u32, 32)
INTEGER(i64, u64, 64)
INTEGER(u64, u64, 64)

#define BITWISE(T, BITS)                                                                                            \
    FN T clz_##T(T a) { return a ? (T)__builtin_clzg(a) : BITS; }                                                   \
    FN T ctz_##T(T a) { return a ? (T)__builtin_ctzg(a) : BITS; }                                                   \
    FN T popcount_##T(T a) { return (T)__builtin_popcountg(a); }                                                    \
    FN T bswap_##T(T a) { return __builtin_bswap##BITS(a); }                                                        \
    FN T reverse_##T(T a) { return __builtin_bitreverse##BITS(a); }                                                 \
    FN T rotate_##T(T a, u32 n) { return __builtin_rotateleft##BITS(a, n & (BITS - 1)); }                           \
    FN T insert_##T(T m, T a, T b) { return (T)((m & a) | (~m & b)); }
BITWISE(u16, 16)
BITWISE(u32, 32)
BITWISE(u64, 64)

FN u32 mulhi_u32(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
FN i32 mulhi_i32(i32 a, i32 b) { return (i32)((i64)a * b >> 32); }
FN u64 mulhi_u64(u64 a, u64 b) { return (u64)((unsigned __int128)a * b >> 64); }
FN u64 wide_u64(u32 a, u32 b, u64 c) { return (u64)a * b + c; }
FN i64 wide_i64(i32 a, i32 b, i64 c) { return (i64)((u64)((i64)a * b) + (u64)c); }
FN u32 mul24_u32(u32 a, u32 b, u32 c) { return (a & 0xffffff) * (b & 0xffffff) + c; }
FN i32 mul24_i32(i32 a, i32 b, i32 c) {
    i32 x = (i32)((u32)a << 8) >> 8, y = (i32)((u32)b << 8) >> 8;
    return (i32)((u32)x * (u32)y + (u32)c);
}
FN u32 add3_u32(u32 a, u32 b, u32 c) { return a + b + c; }
FN u32 lshladd_u32(u32 a, u32 n, u32 c) { return (a << (n & 31)) + c; }
FN u32 addlshl_u32(u32 a, u32 b, u32 n) { return (a + b) << (n & 31); }
FN u32 lshlor_u32(u32 a, u32 n, u32 c) { return a << (n & 31) | c; }
FN u32 xor3_u32(u32 a, u32 b, u32 c) { return a ^ b ^ c; }
FN u32 or3_u32(u32 a, u32 b, u32 c) { return a | b | c; }
FN u32 xorzadd_u32(u32 a, u32 b, u32 c) { return (a ^ b) + c; }
FN i32 median_i32(i32 a, i32 b, i32 c) { return max_i32(min_i32(a, b), min_i32(max_i32(a, b), c)); }
FN u32 median_u32(u32 a, u32 b, u32 c) { return max_u32(min_u32(a, b), min_u32(max_u32(a, b), c)); }
FN i32 max3_i32(i32 a, i32 b, i32 c) { return max_i32(max_i32(a, b), c); }
FN u32 min3_u32(u32 a, u32 b, u32 c) { return min_u32(min_u32(a, b), c); }
FN i32 abs_i32(i32 a) { return a < 0 ? neg_i32(a) : a; }
FN i64 abs_i64(i64 a) { return a < 0 ? neg_i64(a) : a; }
FN u32 extract_u32(u32 a, u32 at, u32 n) { return a >> (at & 31) & ((1u << (n & 31)) - 1); }
FN i32 extract_i32(i32 a, u32 at, u32 n) {
    u32 width = (n & 15) + 1, first = at & 15;
    return (i32)((u32)a << (32 - first - width)) >> (32 - width);
}
FN u32 carry_u32(u32 a, u32 b, u32 c) { return a + b + (c + a < c); }

#define PAIR(name, V, expression)                                                                                   \
    FN u32 name(u32 a, u32 b) {                                                                                     \
        union { u32 bits; V v; } x = {a}, y = {b}, z;                                                               \
        z.v = expression;                                                                                           \
        return z.bits;                                                                                              \
    }
PAIR(pairadd_u32, u16x2, x.v + y.v)
PAIR(pairsub_u32, u16x2, x.v - y.v)
PAIR(pairmul_u32, u16x2, x.v * y.v)
PAIR(pairshl_u32, u16x2, x.v << (y.v & 15))
PAIR(pairshr_u32, u16x2, x.v >> (y.v & 15))
PAIR(pairsar_u32, i16x2, x.v >> (y.v & 15))
PAIR(pairmin_u32, i16x2, __builtin_elementwise_min(x.v, y.v))
PAIR(pairmax_u32, u16x2, __builtin_elementwise_max(x.v, y.v))
PAIR(pairaddsat_u32, i16x2, __builtin_elementwise_add_sat(x.v, y.v))
PAIR(pairsubsat_u32, u16x2, __builtin_elementwise_sub_sat(x.v, y.v))

/* ---- floating point ---- */

FN u16 bits_f16(f16 a) {
    union { f16 f; u16 bits; } x = {a};
    return a != a ? 0x7e00 : x.bits;
}
FN u32 bits_f32(f32 a) {
    union { f32 f; u32 bits; } x = {a};
    return a != a ? 0x7fc00000u : x.bits;
}
FN u64 bits_f64(f64 a) {
    union { f64 f; u64 bits; } x = {a};
    return a != a ? 0x7ff8000000000000ul : x.bits;
}
/* Signalling NaNs become quiet ones by their bits: an operation on them may be left out by a compiler. */
FN f16 make_f16(u16 a) {
    union { u16 bits; f16 f; } x = {(a & 0x7fff) > 0x7c00 ? 0x7e00 : a};
    return x.f;
}
FN f32 make_f32(u32 a) {
    union { u32 bits; f32 f; } x = {(a & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : a};
    return x.f;
}
FN f64 make_f64(u64 a) {
    union { u64 bits; f64 f; } x = {(a & 0x7ffffffffffffffful) > 0x7ff0000000000000ul ? 0x7ff8000000000000ul : a};
    return x.f;
}

/* A term of a sum, a constant +0 hidden from the compiler: of -x + 0 clang 22 makes 0 - x, and of that -x
   wherever an instruction of f16 or f32 can negate its operand. */
#define TERM(T)                                                                                              \
    FN T term_##T(T a) {                                                                                     \
        if (__builtin_constant_p(a) && bits_##T(a) == 0) HIDE(a);                                            \
        return a;                                                                                            \
    }
TERM(f16)
TERM(f32)
FN f64 term_f64(f64 a) { return a; }

/* min and max: zeros of either sign are equal, so the sign of a zero is taken away. */
#define FLOAT(T, X)                                                                                                 \
    FN T add_##T(T a, T b) { return (T)(term_##T(a) + term_##T(b)); }                                               \
    FN T sub_##T(T a, T b) { return (T)(term_##T(a) - b); }                                                         \
    FN T mul_##T(T a, T b) { return (T)(a * b); }                                                                   \
    FN T div_##T(T a, T b) { return (T)(a / b); }                                                                   \
    FN T neg_##T(T a) { return -a; }                                                                                \
    FN T abs_##T(T a) { return __builtin_fabs##X(a); }                                                              \
    FN T sqrt_##T(T a) { return __builtin_elementwise_sqrt(a); }                                                    \
    FN T floor_##T(T a) { return __builtin_elementwise_floor(a); }                                                  \
    FN T ceil_##T(T a) { return __builtin_elementwise_ceil(a); }                                                    \
    FN T trunc_##T(T a) { return __builtin_elementwise_trunc(a); }                                                  \
    FN T rint_##T(T a) { return __builtin_elementwise_rint(a); }                                                    \
    FN T min_##T(T a, T b) { return add_##T(__builtin_fmin##X(a, b), 0); }                                          \
    FN T max_##T(T a, T b) { return add_##T(__builtin_fmax##X(a, b), 0); }                                          \
    FN T copysign_##T(T a, T b) { return b != b ? a : __builtin_copysign##X(a, b); }                                \
    FN T select_##T(u32 c, T a, T b) { return c & 1 ? a : b; }                                                      \
    FN u32 eq_##T(T a, T b) { return a == b; }                                                                      \
    FN u32 lt_##T(T a, T b) { return a < b; }                                                                       \
    FN u32 le_##T(T a, T b) { return a <= b; }                                                                      \
    FN u32 nge_##T(T a, T b) { return !(a >= b); }                                                                  \
    FN u32 unordered_##T(T a, T b) { return __builtin_isunordered(a, b); }
FLOAT(f16, f16)
FLOAT(f32, f)
FLOAT(f64, )

FN f32 fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, term_f32(c)); }
FN f64 fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
FN f32 ldexp_f32(f32 a, i32 n) { return __builtin_ldexpf(a, n % 300); }
FN f64 ldexp_f64(f64 a, i32 n) { return __builtin_ldexp(a, n % 2200); }

#define PAIR_FLOAT(name, operator)                                                                                  \
    FN u32 name(u32 a, u32 b) {                                                                                     \
        union { u32 bits; f16x2 v; } x = {a}, y = {b};                                                              \
        f16x2 z = x.v operator y.v;                                                                                 \
        return bits_f16(z[0]) | (u32)bits_f16(z[1]) << 16;                                                          \
    }
PAIR_FLOAT(pairaddf_u32, +)
PAIR_FLOAT(pairmulf_u32, *)

/* ---- conversions ---- */

#define CONVERT(T, U)                                                                                               \
    FN T to_##T##_from_##U(U a) { return (T)a; }
#define CONVERT_ALL(T) CONVERT(T, u8) CONVERT(T, u16) CONVERT(T, i32) CONVERT(T, u32) CONVERT(T, i64) CONVERT(T, u64)
CONVERT_ALL(u8)
CONVERT_ALL(u16)
CONVERT_ALL(i32)
CONVERT_ALL(u32)
CONVERT_ALL(i64)
CONVERT_ALL(u64)
CONVERT_ALL(f32)
CONVERT_ALL(f64)
CONVERT(f16, u8)
CONVERT(f16, u16)
CONVERT(f32, f16)
CONVERT(f32, f64)
CONVERT(f64, f32)
/* Zeros lose their sign here: clang 22 makes fma_mixlo(a, b, +0) of the rounded product a * b, which takes
   the sign of a zero away. */
FN f16 to_f16_from_f32(f32 a) {
    f16 rounded = (f16)a;
    return bits_f16(rounded) & 0x7fff ? rounded : (f16)0;
}
FN i32 signed8_i32(u8 a) { return (signed char)a; }
FN i32 signed16_i32(u16 a) { return (short)a; }

/* Into the range of T or zero: the comparisons are exact, and false for NaN. */
#define TRUNCATE(T, F, LOW, HIGH)                                                                                   \
    FN T to_##T##_from_##F(F a) { return a > (F)(LOW) && a < (F)(HIGH) ? (T)a : 0; }
TRUNCATE(u16, f16, -1, 65504)
TRUNCATE(i32, f16, -65504, 65504)
TRUNCATE(i32, f32, -2147483904.0, 2147483648.0)
TRUNCATE(u32, f32, -1, 4294967296.0)
TRUNCATE(i64, f32, -9223373136366403584.0, 9223372036854775808.0)
TRUNCATE(u64, f32, -1, 18446744073709551616.0)
TRUNCATE(u8, f32, -1, 256)
TRUNCATE(i32, f64, -2147483649.0, 2147483648.0)
TRUNCATE(u32, f64, -1, 4294967296.0)
TRUNCATE(i64, f64, -9223372036854777856.0, 9223372036854775808.0)
TRUNCATE(u64, f64, -1, 18446744073709551616.0)

/* ---- operations that only the device has an instruction for ---- */

#ifdef __AMDGCN__
FN u32 permute_u32(u32 a, u32 b, u32 c) { return __builtin_amdgcn_perm(a, b, c & 0x07070707); }
FN u32 sad_u32(u32 a, u32 b, u32 c) { return __builtin_amdgcn_sad_u8(a, b, c); }
FN u32 sad16_u32(u32 a, u32 b, u32 c) { return __builtin_amdgcn_sad_u16(a, b, c); }
FN u32 alignbit_u32(u32 a, u32 b, u32 n) { return __builtin_amdgcn_alignbit(a, b, n & 31); }
FN u32 alignbyte_u32(u32 a, u32 b, u32 n) { return __builtin_amdgcn_alignbyte(a, b, n & 3); }
FN u32 lerp_u32(u32 a, u32 b, u32 c) { return __builtin_amdgcn_lerp(a, b, c); }
FN u32 dot4_u32(u32 a, u32 b, u32 c) { return __builtin_amdgcn_udot4(a, b, c, 0); }
FN u32 dot8_u32(u32 a, u32 b, u32 c) { return __builtin_amdgcn_udot8(a, b, c, 0); }
FN i32 dot4_i32(i32 a, i32 b, i32 c) { return __builtin_amdgcn_sudot4(1, a, 1, b, c, 0); }
FN i32 dot4_mixed_i32(i32 a, i32 b, i32 c) { return __builtin_amdgcn_sudot4(1, a, 0, b, c, 0); }
#else
FN u32 byte_of(u64 a, u32 n) { return a >> 8 * n & 255; }
FN u32 permute_u32(u32 a, u32 b, u32 c) {
    u32 result = 0;
    for (u32 n = 0; n < 4; n++) result |= byte_of((u64)a << 32 | b, byte_of(c, n) & 7) << 8 * n;
    return result;
}
FN u32 sad_u32(u32 a, u32 b, u32 c) {
    for (u32 n = 0; n < 4; n++) c += abs_i32((i32)byte_of(a, n) - (i32)byte_of(b, n));
    return c;
}
FN u32 sad16_u32(u32 a, u32 b, u32 c) {
    return c + abs_i32((i32)(a & 0xffff) - (i32)(b & 0xffff)) + abs_i32((i32)(a >> 16) - (i32)(b >> 16));
}
FN u32 alignbit_u32(u32 a, u32 b, u32 n) { return (u32)(((u64)a << 32 | b) >> (n & 31)); }
FN u32 alignbyte_u32(u32 a, u32 b, u32 n) { return (u32)(((u64)a << 32 | b) >> 8 * (n & 3)); }
FN u32 lerp_u32(u32 a, u32 b, u32 c) {
    u32 result = 0;
    for (u32 n = 0; n < 4; n++) result |= (byte_of(a, n) + byte_of(b, n) + (byte_of(c, n) & 1)) >> 1 << 8 * n;
    return result;
}
FN u32 dot4_u32(u32 a, u32 b, u32 c) {
    for (u32 n = 0; n < 4; n++) c += byte_of(a, n) * byte_of(b, n);
    return c;
}
FN u32 dot8_u32(u32 a, u32 b, u32 c) {
    for (u32 n = 0; n < 8; n++) c += (a >> 4 * n & 15) * (b >> 4 * n & 15);
    return c;
}
FN i32 dot4_i32(i32 a, i32 b, i32 c) {
    u32 sum = (u32)c;
    for (u32 n = 0; n < 4; n++) sum += (u32)((signed char)byte_of((u32)a, n) * (signed char)byte_of((u32)b, n));
    return (i32)sum;
}
FN i32 dot4_mixed_i32(i32 a, i32 b, i32 c) {
    u32 sum = (u32)c;
    for (u32 n = 0; n < 4; n++) sum += (u32)((signed char)byte_of((u32)a, n) * (i32)byte_of((u32)b, n));
    return (i32)sum;
}
#endif

/* ---- memory: every index is taken modulo what there is ---- */

#define MEMORY_AS(T, A)                                                                                             \
    FN T load_##T(const GLOBAL u8 *in, u32 n) { return *(const GLOBAL T *)(in + (n * sizeof(T) & (IN_BYTES - 1))); } \
    FN T patch_##T(GLOBAL u8 *out, u32 n) {                                                                         \
        return *(GLOBAL T *)(out + PATCH_AT + (n * sizeof(T) & (PATCH_BYTES - 1)));                                 \
    }                                                                                                               \
    FN void store_##T(GLOBAL u8 *out, u32 n, T v) {                                                                 \
        *(GLOBAL T *)(out + PATCH_AT + (n * sizeof(T) & (PATCH_BYTES - 1))) = v;                                    \
    }                                                                                                               \
    FN void result_##T(GLOBAL u8 *out, u32 n, T v) { *(GLOBAL u64 *)(out + 8 * n) = A(v); }                         \
    FN T shared_##T(SHARED u8 *lds, u32 n) { return *(SHARED T *)(lds + (n * sizeof(T) & (LDS_BYTES - 1))); }       \
    FN void share_##T(SHARED u8 *lds, u32 n, T v) { *(SHARED T *)(lds + (n * sizeof(T) & (LDS_BYTES - 1))) = v; }
#define AS_IS
MEMORY_AS(u8, AS_IS)
MEMORY_AS(u16, AS_IS)
MEMORY_AS(i32, (u32))
MEMORY_AS(u32, AS_IS)
MEMORY_AS(i64, (u64))
MEMORY_AS(u64, AS_IS)
#define MEMORY_FLOAT(T, B)                                                                                          \
    FN T load_##T(const GLOBAL u8 *in, u32 n) { return make_##T(load_##B(in, n)); }                                 \
    FN T patch_##T(GLOBAL u8 *out, u32 n) { return make_##T(patch_##B(out, n)); }                                   \
    FN void store_##T(GLOBAL u8 *out, u32 n, T v) { store_##B(out, n, bits_##T(v)); }                               \
    FN void result_##T(GLOBAL u8 *out, u32 n, T v) { result_##B(out, n, bits_##T(v)); }                             \
    FN T shared_##T(SHARED u8 *lds, u32 n) { return make_##T(shared_##B(lds, n)); }                                 \
    FN void share_##T(SHARED u8 *lds, u32 n, T v) { share_##B(lds, n, bits_##T(v)); }
MEMORY_FLOAT(f16, u16)
MEMORY_FLOAT(f32, u32)
MEMORY_FLOAT(f64, u64)

FN u32 load_quad(const GLOBAL u8 *in, u32 n, u32 which) {
    u32x4 v = *(const GLOBAL u32x4 *)(in + (n * 16 & (IN_BYTES - 1)));
    return which & 2 ? v[3] ^ v[1] : v[0] + v[2];
}
FN void store_quad(GLOBAL u8 *out, u32 n, u32 a, u32 b) {
    u32x4 v = {a, b, a ^ b, a + b};
    *(GLOBAL u32x4 *)(out + PATCH_AT + (n * 16 & (PATCH_BYTES - 1))) = v;
}
FN void shift_words(u32 *local, u32 words, u32 seed) {
    for (u32 n = 0; n < words; n++) local[n] = (seed ^ n) * 0x9e3779b1u;
}
/* By one pointer of which only the lane knows where it points: a word of the input, or of LDS. */
FN u32 load_either(const GLOBAL u8 *in, SHARED u8 *lds, u32 n, u32 which) {
    const u8 *at = which & 1 ? (const u8 *)(in + (n * 4 & (IN_BYTES - 1))) : (const u8 *)(lds + (n * 4 & (LDS_BYTES - 1)));
    return *(const u32 *)at;
}

/* ---- values that have bytes without a meaning, in functions of their own ---- */

#define APART static __attribute__((noinline))
struct padded {
    u8 a;
    u64 b;
    u16 c;
};
APART struct padded padded_twist(struct padded x) {
    struct padded y = x;
    y.a += (u8)x.c;
    y.b ^= x.b << 7;
    return y;
}
FN u64 padded_u64(u32 a, u64 b, u32 c) {
    struct padded x = {(u8)a, b, (u16)c};
    struct padded y = padded_twist(x), z = y;
    return z.b + z.a + ((u64)z.c << 20);
}
typedef u32 u32x3 __attribute__((ext_vector_type(3)));
APART u32x3 triple_twist(u32x3 x, u32 n) { return x.zxy + x * n; }
FN u32 triple_u32(u32 a, u32 b, u32 c) {
    u32x3 list[2] = {{a, b, c}, {c, a, b}};
    u32x3 x = triple_twist(list[a & 1], b);
    return x.x ^ x.y ^ x.z;
}
APART u32 deep_of_u32(u32 a, u32 n) { return n & 7 ? deep_of_u32(a * 0x9e3779b1u + n, n - 1) : a; }
FN u32 deep_u32(u32 a, u32 n) { return deep_of_u32(a, n & 7); }

/* Operations that commute with themselves, each on words of its own. */
enum { ACC_ADD, ACC_SUB, ACC_AND, ACC_OR, ACC_XOR, ACC_UMIN, ACC_UMAX, ACC_IMIN, ACC_IMAX, ACC_KINDS };
enum { ACC_WORDS = 16, ACC_BYTES = ACC_KINDS * ACC_WORDS * 12 };
#define ATOMIC(name, kind, builtin, T, W)                                                                           \
    FN void atomic_##name##_##T(GLOBAL u8 *acc, u32 n, T v) {                                                       \
        GLOBAL T *at = (GLOBAL T *)(acc + W * ACC_KINDS * ACC_WORDS) + kind * ACC_WORDS + (n & (ACC_WORDS - 1));    \
        __scoped_atomic_fetch_##builtin(at, v, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);                            \
    }
#define ATOMICS(T, S, W)                                                                                            \
    ATOMIC(add, ACC_ADD, add, T, W) ATOMIC(sub, ACC_SUB, sub, T, W) ATOMIC(and, ACC_AND, and, T, W)                 \
    ATOMIC(or, ACC_OR, or, T, W) ATOMIC(xor, ACC_XOR, xor, T, W) ATOMIC(min, ACC_UMIN, min, T, W)                   \
    ATOMIC(max, ACC_UMAX, max, T, W) ATOMIC(min, ACC_IMIN, min, S, W) ATOMIC(max, ACC_IMAX, max, S, W)
ATOMICS(u64, i64, 0)
ATOMICS(u32, i32, 8)
#define SHARED_ATOMIC(name)                                                                                         \
    FN void shared_atomic_##name(SHARED u8 *lds, u32 n, u32 v) {                                                    \
        __scoped_atomic_fetch_##name((SHARED u32 *)(lds + (4 * n & (LDS_BYTES - 1))), v, __ATOMIC_RELAXED,          \
                                     __MEMORY_SCOPE_WRKGRP);                                                        \
    }
SHARED_ATOMIC(add) SHARED_ATOMIC(sub) SHARED_ATOMIC(and) SHARED_ATOMIC(or) SHARED_ATOMIC(xor) SHARED_ATOMIC(min)
SHARED_ATOMIC(max)

/* Behind those words: what steps of the whole grid make, then what they need for it. A step has words for flags and
   locks, a flag for each item, and 16 bytes of data for each item. No word has another value than UNSET at first. */
enum { STEPS_MAX = 10, RESULT_WORDS = GROUP, CONTROL_WORDS = 64, UNSET = 0x5a5a5a5a };
enum { RESULTS_AT = ACC_BYTES, CONTROL_AT = RESULTS_AT + STEPS_MAX * RESULT_WORDS * 4 };
enum { FLAGS_AT = CONTROL_AT + STEPS_MAX * CONTROL_WORDS * 4, DATA_AT = FLAGS_AT + STEPS_MAX * ITEMS * 4 };
enum { COMPARED_BYTES = CONTROL_AT, ALL_BYTES = DATA_AT + STEPS_MAX * ITEMS * 16 };
FN GLOBAL u32 *results_of(GLOBAL u8 *acc, u32 step) { return (GLOBAL u32 *)(acc + RESULTS_AT) + step * RESULT_WORDS; }
FN GLOBAL u32 *control_of(GLOBAL u8 *acc, u32 step) { return (GLOBAL u32 *)(acc + CONTROL_AT) + step * CONTROL_WORDS; }
FN GLOBAL u32 *flags_of(GLOBAL u8 *acc, u32 step) { return (GLOBAL u32 *)(acc + FLAGS_AT) + step * ITEMS; }
FN GLOBAL u32 *data_of(GLOBAL u8 *acc, u32 step) { return (GLOBAL u32 *)(acc + DATA_AT) + step * ITEMS * 4; }

/* What one wave at a time does to words that are no atomics. */
FN void add_to_cells(GLOBAL u32 *cells, u32 v) {
    cells[0] += v;
    cells[1] ^= v * 0x9e3779b1u;
    cells[2 + (v & 7)]++;
}
FN u32 fold(u32 sum, u32 v) { return sum * 31 + v; }

struct record {
    u8 a;
    u32 b;
    u16 c;
};
FN struct record make_record(u32 v) { return (struct record){(u8)v, v * 0x9e3779b1u, (u16)(v >> 7)}; }
FN u32 read_record(struct record r) { return r.a + r.b + ((u32)r.c << 9); }

/* ---- phases, lanes, workgroups ---- */

#define MEMORY const GLOBAL u8 *in, GLOBAL u8 *out, GLOBAL u8 *acc, SHARED u8 *lds, u32 item
#define PHASE_INLINE(p, n) FN void p##_phase_##n(struct p##_state *s, MEMORY)
#define PHASE_CALLED(p, n) APART void p##_phase_##n(struct p##_state *s, MEMORY)
#define PHASE_BESIDE(p, n, v) APART void p##_beside_##n(struct p##_state *s, MEMORY) { s->v ^= item * 0x9e3779b1u; }

#ifdef __AMDGCN__
static SHARED __attribute__((loader_uninitialized)) u64 lds_words[GROUP];

FN void barrier(void) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
/* In C, clang 19 takes the size of a group for no kernel's, and assumes the largest. */
#if __clang_major__ < 20
#define KERNEL_ATTRIBUTES __attribute__((amdgpu_kernel))
#else
#define KERNEL_ATTRIBUTES __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(GROUP, GROUP)))
#endif
#define KERNEL(p)                                                                                                   \
    KERNEL_ATTRIBUTES void p(                                                                                       \
        const GLOBAL u8 *in, GLOBAL u8 *all_out, GLOBAL u8 *acc) {                                                  \
        struct p##_state state = {}, *s = &state;                                                                   \
        u32 lane = __builtin_amdgcn_workitem_id_x(), item = __builtin_amdgcn_workgroup_id_x() * GROUP + lane;       \
        GLOBAL u8 *out = all_out + item * OUT_BYTES;                                                                \
        SHARED u8 *lds = (SHARED u8 *)lds_words;                                                                    \
        share_u64(lds, lane, lane * 0x9e3779b97f4a7c15ul);                                                          \
        barrier();
#define END_KERNEL }
#define PHASE(p, n) p##_phase_##n(s, in, out, acc, lds, item);
#define PHASE_CHOSEN(p, n, v) (s->v & 1 ? p##_phase_##n : p##_beside_##n)(s, in, out, acc, lds, item);
#define SHARE(T, v, factor, offset) barrier(); share_##T(lds, (lane * factor + offset) & (GROUP - 1), s->v); barrier();
#define SHARED_SUM(name, v, index) barrier(); shared_atomic_##name(lds, s->index, s->v); barrier();
#define CROSS(operation, to, from, index, immediate) s->to = device_##operation(s->from, s->index, immediate);

#define HALF_LANE(index) (((lane & (WAVE - 1) & 32) | ((index) & 31)) << 2)
#define device_readlane(v, i, m) __builtin_amdgcn_readlane(v, (m) & (WAVE - 1))
#define device_readlane_at(v, i, m) __builtin_amdgcn_readlane(v, __builtin_amdgcn_readfirstlane(i) & (WAVE - 1))
#define device_readfirstlane(v, i, m) __builtin_amdgcn_readfirstlane(v)
#define device_bpermute(v, i, m) __builtin_amdgcn_ds_bpermute(HALF_LANE(i), v)
#define device_permute(v, i, m) __builtin_amdgcn_ds_permute(HALF_LANE(lane ^ (m)), v)
#define device_swizzle(v, i, m) __builtin_amdgcn_ds_swizzle(v, (m) & 0x7fff)
#define device_swizzle_quad(v, i, m) __builtin_amdgcn_ds_swizzle(v, 0x8000 | ((m) & 0xff))
/* Used at its place: clang 22 moves these three behind a branch to their only use, where lanes are
   missing. */
#define HERE(exchange) ({ u32 got = exchange; __asm__ volatile("" : "+v"(got)); got; })
/* These two are moved by clang 19 alone. */
#if __clang_major__ < 20
#define HERE_OF_19 HERE
#else
#define HERE_OF_19(exchange) exchange
#endif
#define device_permlane16(v, i, m) HERE_OF_19(__builtin_amdgcn_permlane16(i, v, m, (u32)(m) * 0x9e3779b1u, 0, 0))
#define device_permlanex16(v, i, m) HERE_OF_19(__builtin_amdgcn_permlanex16(i, v, m, (u32)(m) * 0x9e3779b1u, 0, 0))
#define device_permlane16_var(v, i, m) HERE(__builtin_amdgcn_permlane16_var(v, v, i, 0, 0))
#define device_permlanex16_var(v, i, m) HERE(__builtin_amdgcn_permlanex16_var(v, v, i, 0, 0))
#define DPP(v, i, control, zero) __builtin_amdgcn_update_dpp(i, v, control, 0xf, 0xf, zero)
#define device_quad_perm(v, i, m) DPP(v, i, (m) & 0xff, 0)
#define device_row_shl(v, i, m) DPP(v, i, 0x101 + (m) % 15, 0)
#define device_row_shl_zero(v, i, m) DPP(v, i, 0x101 + (m) % 15, 1)
#define device_row_shr(v, i, m) DPP(v, i, 0x111 + (m) % 15, 0)
#define device_row_ror(v, i, m) DPP(v, i, 0x121 + (m) % 15, 0)
#define device_row_mirror(v, i, m) DPP(v, i, 0x140, 0)
#define device_row_half_mirror(v, i, m) DPP(v, i, 0x141, 0)
#define device_row_share(v, i, m) DPP(v, i, 0x150 + (m) % 16, 0)
#define device_row_xmask(v, i, m) DPP(v, i, 0x160 + (m) % 16, 0)
#define device_dpp8(v, i, m) HERE(__builtin_amdgcn_mov_dpp8(v, (m) & 0xffffff))
#if WAVE == 32
#define device_ballot(v, i, m) __builtin_amdgcn_ballot_w32(((v) ^ (i)) & 1)
#define device_mbcnt(v, i, m) __builtin_amdgcn_mbcnt_lo(v, i)
#else
#define device_ballot(v, i, m) (u32)(__builtin_amdgcn_ballot_w64(((v) ^ (i)) & 1) >> 32 * ((m) & 1))
#define device_mbcnt(v, i, m) __builtin_amdgcn_mbcnt_hi(~(v), __builtin_amdgcn_mbcnt_lo(v, i))
#endif

/* ---- what waves and workgroups do together: NAME(step, to, from, sync, number), on variables of u32 ---- */

FN void pause(void) { __builtin_amdgcn_s_sleep(1); }
/* How a flag is written and read, in three ways and three scopes. */
#define SYNC(S, SCOPE, NAME)                                                                                        \
    FN void release_direct_##S(GLOBAL u32 *at, u32 v) { __scoped_atomic_store_n(at, v, __ATOMIC_RELEASE, SCOPE); }  \
    FN u32 acquire_direct_##S(GLOBAL u32 *at) { return __scoped_atomic_load_n(at, __ATOMIC_ACQUIRE, SCOPE); }       \
    FN void release_fence_##S(GLOBAL u32 *at, u32 v) {                                                              \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, NAME);                                                             \
        __scoped_atomic_store_n(at, v, __ATOMIC_RELAXED, SCOPE);                                                    \
    }                                                                                                               \
    FN u32 acquire_fence_##S(GLOBAL u32 *at) {                                                                      \
        u32 v = __scoped_atomic_load_n(at, __ATOMIC_RELAXED, SCOPE);                                                \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, NAME);                                                             \
        return v;                                                                                                   \
    }                                                                                                               \
    FN void release_swap_##S(GLOBAL u32 *at, u32 v) { __scoped_atomic_exchange_n(at, v, __ATOMIC_ACQ_REL, SCOPE); } \
    FN u32 acquire_swap_##S(GLOBAL u32 *at) { return __scoped_atomic_fetch_or(at, 0, __ATOMIC_ACQUIRE, SCOPE); }    \
    FN u32 count_direct_##S(GLOBAL u32 *at) { return __scoped_atomic_fetch_add(at, 1, __ATOMIC_ACQ_REL, SCOPE); }   \
    FN u32 count_swap_##S(GLOBAL u32 *at) { return __scoped_atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST, SCOPE); }     \
    FN u32 count_fence_##S(GLOBAL u32 *at) {                                                                        \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, NAME);                                                             \
        u32 v = __scoped_atomic_fetch_add(at, 1, __ATOMIC_RELAXED, SCOPE);                                          \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, NAME);                                                             \
        return v;                                                                                                   \
    }                                                                                                               \
    FN u32 take_direct_##S(GLOBAL u32 *at) { return __scoped_atomic_exchange_n(at, 1, __ATOMIC_ACQUIRE, SCOPE); }   \
    FN u32 take_swap_##S(GLOBAL u32 *at) {                                                                          \
        u32 free = UNSET;                                                                                           \
        __scoped_atomic_compare_exchange_n(at, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED, SCOPE);             \
        return free;                                                                                                \
    }                                                                                                               \
    FN u32 take_fence_##S(GLOBAL u32 *at) {                                                                         \
        u32 v = __scoped_atomic_exchange_n(at, 1, __ATOMIC_RELAXED, SCOPE);                                         \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, NAME);                                                             \
        return v;                                                                                                   \
    }
SYNC(workgroup, __MEMORY_SCOPE_WRKGRP, "workgroup")
SYNC(device, __MEMORY_SCOPE_DEVICE, "agent")
SYNC(system, __MEMORY_SCOPE_SYSTEM, "")

static SHARED __attribute__((loader_uninitialized)) u32 lds_last;
static SHARED __attribute__((loader_uninitialized)) struct record lds_records[GROUP];

/* A group takes what the group before it has stored, behind its flag. */
#define HANDOVER(step, to, from, sync, number)                                                                      \
    {                                                                                                               \
        GLOBAL u32 *data = data_of(acc, step), *flags = flags_of(acc, step);                                        \
        data[item] = s->from;                                                                                       \
        barrier();                                                                                                  \
        if (lane == 0) release_##sync(flags + item / GROUP, number | 1);                                                \
        u32 got = number;                                                                                           \
        if (item >= GROUP) {                                                                                        \
            if (lane == 0)                                                                                          \
                while (acquire_##sync(flags + item / GROUP - 1) == UNSET) pause();                                  \
            barrier();                                                                                              \
            got = data[(item - GROUP) ^ (number & (GROUP - 1))];                                                    \
        }                                                                                                           \
        s->to ^= got;                                                                                               \
    }
/* Every lane of a group's first half hands its value to one of the second half, behind a flag of its own. */
#define LANES(step, to, from, sync, number)                                                                         \
    {                                                                                                               \
        GLOBAL u32 *data = data_of(acc, step), *flags = flags_of(acc, step);                                        \
        if (lane < 32) {                                                                                            \
            data[item] = s->from;                                                                                   \
            release_##sync(flags + item, number | 1);                                                                 \
        }                                                                                                           \
        __builtin_amdgcn_wave_barrier();                                                                            \
        if (lane >= 32) {                                                                                           \
            while (acquire_##sync(flags + item - 32) == UNSET) pause();                                             \
            s->to += data[item - 32];                                                                               \
        }                                                                                                           \
    }
/* The group that is last to count reads what all have stored. */
#define LAST(step, to, from, sync, number)                                                                          \
    {                                                                                                               \
        GLOBAL u32 *data = data_of(acc, step);                                                                      \
        data[item] = s->from;                                                                                       \
        barrier();                                                                                                  \
        if (lane == 0) lds_last = count_##sync(control_of(acc, step)) == UNSET + GROUPS - 1;                        \
        barrier();                                                                                                  \
        if (lds_last) {                                                                                             \
            u32 sum = number;                                                                                       \
            for (u32 n = 0; n < GROUPS; n++) sum = fold(sum, data[n * GROUP + lane]);                               \
            results_of(acc, step)[lane] = sum;                                                                      \
        }                                                                                                           \
    }
#define LOCK(step, to, from, sync, number)                                                                          \
    if ((lane & (WAVE - 1)) == 0) {                                                                                 \
        GLOBAL u32 *lock = control_of(acc, step);                                                                   \
        while (take_##sync(lock) == 1) pause();                                                                     \
        add_to_cells(results_of(acc, step), s->from);                                                               \
        release_##sync(lock, UNSET);                                                                                \
    }
#define TICKET(step, to, from, sync, number)                                                                        \
    if ((lane & (WAVE - 1)) == 0) {                                                                                 \
        GLOBAL u32 *next = control_of(acc, step), *serving = next + 1;                                              \
        u32 own = __scoped_atomic_fetch_add(next, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);                      \
        while (acquire_##sync(serving) != own) pause();                                                             \
        add_to_cells(results_of(acc, step), s->from);                                                               \
        release_##sync(serving, own + 1);                                                                           \
    }
/* LDS as two buffers: a barrier for each turn. */
#define DOUBLE_BUFFER(step, to, from, sync, number)                                                                 \
    {                                                                                                               \
        u32 v = s->from;                                                                                            \
        barrier();                                                                                                  \
        for (u32 n = 0; n < 2 + number % 4; n++) {                                                                  \
            share_u32(lds, (n & 1) * GROUP + lane, v);                                                              \
            barrier();                                                                                              \
            v = fold(v, shared_u32(lds, (n & 1) * GROUP + ((lane + number) & (GROUP - 1))));                        \
        }                                                                                                           \
        barrier();                                                                                                  \
        s->to = v;                                                                                                  \
    }
/* Only half of the items store; the barrier's signal and wait stand apart. */
#define SOME_STORE(step, to, from, sync, number)                                                                    \
    barrier();                                                                                                      \
    if ((lane >> 5 & 1) == (number & 1)) share_u32(lds, lane ^ (number >> 1 & 31), s->from);                        \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                                          \
    __builtin_amdgcn_s_barrier_signal(-1);                                                                          \
    s->to ^= number;                                                                                                \
    __builtin_amdgcn_s_barrier_wait(-1);                                                                            \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#define REDUCE(step, to, from, sync, number)                                                                        \
    barrier();                                                                                                      \
    share_u32(lds, lane, s->from);                                                                                  \
    barrier();                                                                                                      \
    for (u32 n = GROUP / 2; n; n /= 2) {                                                                            \
        if (lane < n) share_u32(lds, lane, fold(shared_u32(lds, lane), shared_u32(lds, lane + n)));                 \
        barrier();                                                                                                  \
    }                                                                                                               \
    s->to += shared_u32(lds, 0);
/* A store and an atomic by a pointer of which only the lane knows where it points. */
#define EITHER_STORE(step, to, from, sync, number)                                                                  \
    barrier();                                                                                                      \
    *(u32 *)(s->to & 1 ? (u8 *)(lds + 4 * lane) : (u8 *)(out + PATCH_AT + 4 * (number & 31))) = s->from;            \
    barrier();
#define EITHER_ATOMIC(step, to, from, sync, number)                                                                 \
    barrier();                                                                                                      \
    __scoped_atomic_fetch_add((u32 *)(s->to & 1 ? (u8 *)(lds + 4 * (number & 127)) : (u8 *)results_of(acc, step)),  \
                              s->from, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);                                    \
    barrier();
/* Values with bytes that nobody writes, copied whole: through memory and through LDS. */
#define RECORDS(step, to, from, sync, number)                                                                       \
    {                                                                                                               \
        GLOBAL struct record *records = (GLOBAL struct record *)data_of(acc, step);                                 \
        records[item] = make_record(s->from);                                                                       \
        lds_records[lane] = make_record(s->to);                                                                     \
        barrier();                                                                                                  \
        struct record one = records[item ^ (number & (GROUP - 1))], two = lds_records[lane ^ (number & (GROUP - 1))]; \
        barrier();                                                                                                  \
        s->to = fold(read_record(one), read_record(two));                                                           \
    }
#define TRIPLES(step, to, from, sync, number)                                                                       \
    {                                                                                                               \
        GLOBAL u32x3 *triples = (GLOBAL u32x3 *)data_of(acc, step);                                                 \
        triples[item] = (u32x3){s->from, s->to, lane};                                                              \
        barrier();                                                                                                  \
        u32x3 got = triples[item ^ (number & (GROUP - 1))];                                                         \
        s->to = fold(fold(got.x, got.y), got.z);                                                                    \
    }
/* A product of bytes, signed by unsigned, as one matrix of each wave. */
#if WAVE == 32
#define MULTIPLY __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12
typedef i32 matrix_bytes __attribute__((ext_vector_type(2)));
typedef i32 matrix_sums __attribute__((ext_vector_type(8)));
#define MATRIX_BYTES(a, b) (matrix_bytes){(i32)(a), (i32)(b)}
#else
#define MULTIPLY __builtin_amdgcn_wmma_i32_16x16x16_iu8_w64_gfx12
typedef i32 matrix_bytes;
typedef i32 matrix_sums __attribute__((ext_vector_type(4)));
#define MATRIX_BYTES(a, b) (matrix_bytes)(a)
#endif
#define MATRIX(step, to, from, sync, number)                                                                        \
    {                                                                                                               \
        u32 one = s->from, two = s->to;                                                                             \
        matrix_sums d = (matrix_sums)((i32)(one ^ lane));                                                           \
        d = MULTIPLY(1, MATRIX_BYTES(one, two), 0, MATRIX_BYTES(two ^ number, one + number), d, 0);                 \
        s->to = 0;                                                                                                  \
        for (u32 n = 0; n < 256 / WAVE; n++) s->to = fold(s->to, (u32)d[n]);                                        \
    }

#else /* the host */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH for (u32 lane = 0, item = base; lane < GROUP; lane++, item++)
#define KERNEL(p)                                                                                                   \
    static void p(const u8 *in, u8 *all_out, u8 *acc) {                                                             \
        for (u32 base = 0; base < ITEMS; base += GROUP) {                                                           \
            struct p##_state state[GROUP];                                                                          \
            _Alignas(16) u8 lds[LDS_BYTES];                                                                         \
            memset(state, 0, sizeof state);                                                                         \
            EACH share_u64(lds, lane, lane * 0x9e3779b97f4a7c15ul);
#define END_KERNEL }}
#define PHASE(p, n) EACH p##_phase_##n(state + lane, in, all_out + item * OUT_BYTES, acc, lds, item);
#define PHASE_CHOSEN(p, n, v)                                                                                       \
    EACH(state[lane].v & 1 ? p##_phase_##n : p##_beside_##n)(state + lane, in, all_out + item * OUT_BYTES, acc, lds, item);
#define SHARE(T, v, factor, offset) EACH share_##T(lds, (lane * factor + offset) & (GROUP - 1), state[lane].v);
#define SHARED_SUM(name, v, index) EACH shared_atomic_##name(lds, state[lane].index, state[lane].v);
#define CROSS(operation, to, from, index, immediate)                                                                \
    for (u32 wave = 0; wave < GROUP; wave += WAVE) {                                                                \
        u32 v[WAVE], i[WAVE];                                                                                       \
        for (u32 l = 0; l < WAVE; l++) v[l] = state[wave + l].from, i[l] = state[wave + l].index;                   \
        for (u32 l = 0; l < WAVE; l++) state[wave + l].to = host_##operation(v, i, l, immediate);                   \
    }
#define HOST(name, expression)                                                                                      \
    FN u32 host_##name(const u32 *v, const u32 *i, u32 l, u32 m) { return expression; }
#define NIBBLE ((l & 8 ? m * 0x9e3779b1u : m) >> 4 * (l & 7) & 15)
HOST(readlane, v[m & (WAVE - 1)])
HOST(readlane_at, v[i[0] & (WAVE - 1)])
HOST(readfirstlane, v[0])
HOST(bpermute, v[(l & 32) | (i[l] & 31)])
HOST(permute, v[(l & 32) | ((l ^ m) & 31)])
HOST(swizzle, v[(l & 32) | ((((l & 31) & m) | (m >> 5 & 31)) ^ (m >> 10 & 31))])
HOST(swizzle_quad, v[(l & ~3u) | (m >> 2 * (l & 3) & 3)])
HOST(permlane16, v[(l & ~15u) | NIBBLE])
HOST(permlanex16, v[((l & ~15u) ^ 16) | NIBBLE])
HOST(permlane16_var, v[(l & ~15u) | (i[l] & 15)])
HOST(permlanex16_var, v[((l & ~15u) ^ 16) | (i[l] & 15)])
HOST(quad_perm, v[(l & ~3u) | (m >> 2 * (l & 3) & 3)])
HOST(row_shl, (l & 15) + 1 + m % 15 < 16 ? v[l + 1 + m % 15] : i[l])
HOST(row_shl_zero, (l & 15) + 1 + m % 15 < 16 ? v[l + 1 + m % 15] : 0)
HOST(row_shr, (l & 15) >= 1 + m % 15 ? v[l - 1 - m % 15] : i[l])
HOST(row_ror, v[(l & ~15u) | ((l - 1 - m % 15) & 15)])
HOST(row_mirror, v[l ^ 15])
HOST(row_half_mirror, v[l ^ 7])
HOST(row_share, v[(l & ~15u) | m % 16])
HOST(row_xmask, v[l ^ m % 16])
HOST(dpp8, v[(l & ~7u) | (m >> 3 * (l & 7) & 7)])
FN u32 host_ballot(const u32 *v, const u32 *i, u32 l, u32 m) {
    u32 mask = 0, first = WAVE == 64 ? 32 * (m & 1) : 0;
    for (u32 n = 0; n < 32; n++) mask |= ((v[first + n] ^ i[first + n]) & 1) << n;
    return mask;
}
FN u32 host_mbcnt(const u32 *v, const u32 *i, u32 l, u32 m) {
    u32 below = (1u << (l & 31)) - 1;
    if (l < 32) return i[l] + popcount_u32(v[l] & below);
    return i[l] + popcount_u32(v[l]) + popcount_u32(~v[l] & below);
}

#define HANDOVER(step, to, from, sync, number)                                                                      \
    EACH data_of(acc, step)[item] = state[lane].from;                                                               \
    EACH state[lane].to ^= base ? data_of(acc, step)[(item - GROUP) ^ (number & (GROUP - 1))] : number;
#define LANES(step, to, from, sync, number)                                                                         \
    for (u32 n = 32; n < GROUP; n++) state[n].to += state[n - 32].from;
#define LAST(step, to, from, sync, number)                                                                          \
    EACH data_of(acc, step)[item] = state[lane].from;                                                               \
    if (base == ITEMS - GROUP) EACH {                                                                               \
        u32 sum = number;                                                                                           \
        for (u32 n = 0; n < GROUPS; n++) sum = fold(sum, data_of(acc, step)[n * GROUP + lane]);                     \
        results_of(acc, step)[lane] = sum;                                                                          \
    }
#define LOCK(step, to, from, sync, number)                                                                          \
    for (u32 n = 0; n < GROUP; n += WAVE) add_to_cells(results_of(acc, step), state[n].from);
#define TICKET LOCK
#define DOUBLE_BUFFER(step, to, from, sync, number)                                                                 \
    {                                                                                                               \
        u32 v[GROUP];                                                                                               \
        EACH v[lane] = state[lane].from;                                                                            \
        for (u32 n = 0; n < 2 + number % 4; n++) {                                                                  \
            EACH share_u32(lds, (n & 1) * GROUP + lane, v[lane]);                                                   \
            EACH v[lane] = fold(v[lane], shared_u32(lds, (n & 1) * GROUP + ((lane + number) & (GROUP - 1))));       \
        }                                                                                                           \
        EACH state[lane].to = v[lane];                                                                              \
    }
#define SOME_STORE(step, to, from, sync, number)                                                                    \
    EACH {                                                                                                          \
        if ((lane >> 5 & 1) == (number & 1)) share_u32(lds, lane ^ (number >> 1 & 31), state[lane].from);           \
        state[lane].to ^= number;                                                                                   \
    }
#define REDUCE(step, to, from, sync, number)                                                                        \
    EACH share_u32(lds, lane, state[lane].from);                                                                    \
    for (u32 n = GROUP / 2; n; n /= 2)                                                                              \
        for (u32 l = 0; l < n; l++) share_u32(lds, l, fold(shared_u32(lds, l), shared_u32(lds, l + n)));            \
    EACH state[lane].to += shared_u32(lds, 0);
#define EITHER_STORE(step, to, from, sync, number)                                                                  \
    EACH *(u32 *)(state[lane].to & 1 ? lds + 4 * lane : all_out + item * OUT_BYTES + PATCH_AT + 4 * (number & 31))  \
        = state[lane].from;
#define EITHER_ATOMIC(step, to, from, sync, number)                                                                 \
    EACH *(u32 *)(state[lane].to & 1 ? lds + 4 * (number & 127) : (u8 *)results_of(acc, step)) += state[lane].from;
#define RECORDS(step, to, from, sync, number)                                                                       \
    {                                                                                                               \
        u32 one[GROUP], two[GROUP];                                                                                 \
        EACH one[lane] = read_record(make_record(state[lane].from)), two[lane] = read_record(make_record(state[lane].to)); \
        EACH state[lane].to = fold(one[lane ^ (number & (GROUP - 1))], two[lane ^ (number & (GROUP - 1))]);         \
    }
#define TRIPLES(step, to, from, sync, number)                                                                       \
    {                                                                                                               \
        u32 got[GROUP];                                                                                             \
        EACH got[lane] = fold(fold(state[lane].from, state[lane].to), lane);                                        \
        EACH state[lane].to = got[lane ^ (number & (GROUP - 1))];                                                   \
    }

/* Where a lane's byte stands in its row of A and its column of B, and its sum in its column of the result. */
FN u32 matrix_k(u32 lane, u32 word, u32 byte) {
    u32 half = lane / 16 % 2;
    return WAVE == 32 ? 8 * half + 4 * word + byte : 4 * (lane / 32) + 8 * half + byte;
}
FN u32 matrix_row(u32 lane, u32 n) {
    u32 half = lane / 16 % 2;
    return WAVE == 32 ? 8 * half + n : 8 * half + 4 * (lane / 32) + n;
}
FN u32 matrix_word(u32 one, u32 two, u32 number, u32 is_b, u32 word) {
    if (is_b) return word ? one + number : two ^ number;
    return word ? two : one;
}
/* The lanes of one wave: what they have in the two variables, and what becomes of the second. */
FN void multiply(const u32 *one, u32 *two, u32 base, u32 number) {
    u32 a[16][16], b[16][16], result[WAVE];
    for (u32 lane = 0; lane < WAVE; lane++)
        for (u32 n = 0; n < 256 / WAVE; n++) {
            u32 word = n / 4, k = matrix_k(lane, word, n % 4);
            a[lane % 16][k] = (u32)(signed char)(matrix_word(one[lane], two[lane], number, 0, word) >> 8 * (n % 4));
            b[lane % 16][k] = (u8)(matrix_word(one[lane], two[lane], number, 1, word) >> 8 * (n % 4));
        }
    for (u32 lane = 0; lane < WAVE; lane++) {
        result[lane] = 0;
        for (u32 n = 0; n < 256 / WAVE; n++) {
            u32 sum = one[lane] ^ (base + lane);
            for (u32 k = 0; k < 16; k++) sum += a[matrix_row(lane, n)][k] * b[lane % 16][k];
            result[lane] = fold(result[lane], sum);
        }
    }
    memcpy(two, result, sizeof result);
}
#define MATRIX(step, to, from, sync, number)                                                                        \
    for (u32 wave = 0; wave < GROUP; wave += WAVE) {                                                                \
        u32 one[WAVE], two[WAVE];                                                                                   \
        for (u32 l = 0; l < WAVE; l++) one[l] = state[wave + l].from, two[l] = state[wave + l].to;                  \
        multiply(one, two, wave, number);                                                                           \
        for (u32 l = 0; l < WAVE; l++) state[wave + l].to = two[l];                                                 \
    }

/* Reads the inputs of one program after the other and writes what they make of them. */
static int run_all(void (*const *programs)(const u8 *, u8 *, u8 *), u32 count) {
    u8 *in = aligned_alloc(64, IN_BYTES), *out = aligned_alloc(64, ITEMS * OUT_BYTES);
    static _Alignas(64) u8 acc[ALL_BYTES];
    for (u32 n = 0; n < count; n++) {
        memset(out, 0, ITEMS * OUT_BYTES);
        memset(acc, 0x5a, ALL_BYTES);
        if (fread(in, 1, IN_BYTES, stdin) != IN_BYTES) return 3;
        programs[n](in, out, acc);
        if (fwrite(out, 1, ITEMS * OUT_BYTES, stdout) != ITEMS * OUT_BYTES) return 4;
        if (fwrite(acc, 1, COMPARED_BYTES, stdout) != COMPARED_BYTES) return 4;
    }
    return fflush(stdout) ? 4 : 0;
}
#endif
