.amdgcn_target "amdgcn-amd-amdhsa--gfx1201"
.text
.globl double
.p2align 8
.type double,@function
double:
s_load_b64 s[0:1], s[0:1], 0
v_lshlrev_b32 v1, 2, v0
s_wait_kmcnt 0
global_load_b32 v2, v1, s[0:1]
s_wait_loadcnt 0
v_lshlrev_b32 v2, 1, v2
global_store_b32 v1, v2, s[0:1]
done:
s_endpgm
.Lend:
.size double, .Lend-double
.rodata
.p2align 6
.amdhsa_kernel double
.amdhsa_next_free_vgpr 3
.amdhsa_next_free_sgpr 2
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_kernarg_size 8
.amdhsa_system_sgpr_workgroup_id_x 1
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: double
    .symbol: double.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 2
    .vgpr_count: 3
    .max_flat_workgroup_size: 64
    .args:
      - { .name: data, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global }
...
.end_amdgpu_metadata
