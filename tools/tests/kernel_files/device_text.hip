// The device's side of printf, written after the published protocol (loader/src/print): what AMD's libraries would bring.
// The functions have the names that clang calls.

#define DEVICE __attribute__((device))
#define CALLED extern "C" DEVICE __attribute__((used))
typedef unsigned u32;
typedef unsigned long u64;

extern "C" DEVICE int printf(char const *, ...);

struct Header { u64 next, lanes; u32 service, control; };
struct Calls { Header *headers; u64 (*payloads)[64][8]; u64 doorbell, free_stack, ready_stack, mask; };

DEVICE inline Calls *calls() { return ((Calls *const *)__builtin_amdgcn_implicitarg_ptr())[10]; }
DEVICE inline u32 lane_number() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
DEVICE inline u64 of_first_lane(u64 value) {
    u32 low = __builtin_amdgcn_readfirstlane((u32)value), high = __builtin_amdgcn_readfirstlane((u32)(value >> 32));
    return (u64)high << 32 | low;
}

DEVICE inline u64 pop(Calls *all) {
    u64 top = __hip_atomic_load(&all->free_stack, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
    for (;;) {
        u64 *link = &all->headers[top & all->mask].next;
        u64 next = __hip_atomic_load(link, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
        if (__hip_atomic_compare_exchange_strong(&all->free_stack, &top, next, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE,
                                                 __HIP_MEMORY_SCOPE_SYSTEM))
            return top;
        __builtin_amdgcn_s_sleep(1);
    }
}

DEVICE inline void push(Calls *all, u64 *stack, u64 packet) {
    u64 top = __hip_atomic_load(stack, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    do {
        // Plain, as AMD's libraries do it.
        all->headers[packet & all->mask].next = top;
    } while (!__hip_atomic_compare_exchange_strong(stack, &top, packet, __ATOMIC_RELEASE, __ATOMIC_RELAXED,
                                                   __HIP_MEMORY_SCOPE_SYSTEM));
}

// One request of every active lane; the first quadword of the answer.
DEVICE __attribute__((noinline)) u64 hostcall(u32 service, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) {
    Calls *all = calls();
    u32 lane = lane_number();
    bool leads = lane == __builtin_amdgcn_readfirstlane(lane);
    u64 lanes = __builtin_amdgcn_read_exec();
    u64 packet = 0;
    if (leads) packet = pop(all);
    packet = of_first_lane(packet);
    Header *header = all->headers + (packet & all->mask);
    u64 *slot = all->payloads[packet & all->mask][lane];
    slot[0] = a; slot[1] = b; slot[2] = c; slot[3] = d; slot[4] = e; slot[5] = f; slot[6] = g; slot[7] = h;
    if (leads) {
        header->lanes = lanes;
        header->service = service;
        header->control = 1;
        push(all, &all->ready_stack, packet);
        // The value of the signal, then its mailbox, which has to be null here.
        u64 *signal = (u64 *)all->doorbell;
        __hip_atomic_fetch_add(signal + 1, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
        if (signal[2] != 0) __builtin_trap();
    }
    u32 waits = 1;
    while (waits) {
        if (leads) waits = __hip_atomic_load(&header->control, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) & 1;
        waits = __builtin_amdgcn_readfirstlane(waits);
        __builtin_amdgcn_s_sleep(1);
    }
    u64 answer = slot[0];
    if (leads) push(all, &all->free_stack, packet + all->mask + 1 ? packet + all->mask + 1 : all->mask + 1);
    return answer;
}

// Messages: bit 0 of the first quadword begins one, bit 1 ends it, bits 7:5 count the quadwords behind it.
CALLED u64 __ockl_printf_begin(u64) { return hostcall(2, 1 | 1 << 5, 0, 0, 0, 0, 0, 0, 0); }
CALLED u64 __ockl_fprintf_stderr_begin() { return hostcall(2, 1 | 1 << 5, 1, 0, 0, 0, 0, 0, 0); }
CALLED u64 __ockl_printf_append_args(u64 message, u32 count, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u32 last) {
    return hostcall(2, (message & ~0xFFul) | (last ? 2 : 0) | count << 5, a, b, c, d, e, f, g);
}
CALLED u64 __ockl_printf_append_string_n(u64 message, char const *text, u64 bytes, u32 last) {
    u64 at = 0;
    do {
        u64 words[7] = {};
        u32 count = 0;
        for (; count < 7 && (at < bytes || count == 0); ++count)
            for (u32 byte = 0; byte < 8; ++byte, ++at)
                if (at < bytes) words[count] |= (u64)(unsigned char)text[at] << 8 * byte;
        message = __ockl_printf_append_args(message, count, words[0], words[1], words[2], words[3], words[4], words[5],
                                            words[6], last && at >= bytes);
    } while (at < bytes);
    return message;
}

// The printf buffer: bytes used, bytes there are, messages.
CALLED __attribute__((address_space(1))) char *__printf_alloc(u32 bytes) {
    u32 *buffer = ((u32 *const *)__builtin_amdgcn_implicitarg_ptr())[9];
    u32 at = __hip_atomic_fetch_add(buffer, bytes, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    if (at + bytes > buffer[1]) return nullptr;
    return (__attribute__((address_space(1))) char *)((char *)(buffer + 2) + at);
}

DEVICE inline u64 length(char const *text) {
    u64 bytes = 1;
    while (text[bytes - 1]) ++bytes;
    return bytes;
}
CALLED __attribute__((noinline)) void __assert_fail(char const *condition, char const *file, u32 line, char const *function) {
    char const format[] = "%s:%u: %s: the assertion `%s' failed\n";
    u64 message = __ockl_fprintf_stderr_begin();
    message = __ockl_printf_append_string_n(message, format, sizeof format, 0);
    message = __ockl_printf_append_string_n(message, file, length(file), 0);
    message = __ockl_printf_append_args(message, 1, line, 0, 0, 0, 0, 0, 0, 0);
    message = __ockl_printf_append_string_n(message, function, length(function), 0);
    __ockl_printf_append_string_n(message, condition, length(condition), 1);
    __builtin_trap();
}
#define assert(condition) ((condition) ? (void)0 : __assert_fail(#condition, __FILE__, __LINE__, __PRETTY_FUNCTION__))
#define KERNEL extern "C" __attribute__((global))
