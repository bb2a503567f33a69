typedef unsigned int uint;

#define GLOBAL_ID() ((uint)(__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + \
                            __builtin_amdgcn_workitem_id_x()))

__kernel void add(__global const float *a, __global const float *b, __global float *c, uint n, float s) {
    uint i = GLOBAL_ID();
    if (i < n) c[i] = a[i] + b[i] * s;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void local_memory(__global uint *o, __local uint *d) {
    __local uint t[64];
    uint l = __builtin_amdgcn_workitem_id_x();
    t[l] = l * 3;
    d[l] = l;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    o[GLOBAL_ID()] = t[63 - l] + d[l ^ 1];
}

__kernel void scratch(__global uint *o, uint n) {
    uint volatile a[32];
    for (uint i = 0; i < 32; i++) a[i] = i * n;
    uint s = 0;
    for (uint i = 0; i < n; i++) s += a[(i * 7 + __builtin_amdgcn_workitem_id_x()) & 31];
    o[GLOBAL_ID()] = s;
}

__constant uint table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

__kernel void lookup(__global uint *o) { o[GLOBAL_ID()] = table[GLOBAL_ID() & 7]; }
