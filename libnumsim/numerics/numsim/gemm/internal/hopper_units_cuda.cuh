// Instructions of Hopper (sm_90a) that CUDA C++ does not offer: tensor cores (wgmma), the bulk
// tensor copy engine, barriers in shared memory.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace numsim::cuda {

#define NUMSIM_DEVICE __device__ __forceinline__

NUMSIM_DEVICE uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

// --- Barriers in shared memory. Addresses are those of SharedAddress. Arrivals and waits order
// only the block's own accesses. That suffices for data that the copy engine writes and the tensor
// cores read; ordering the cluster's accesses would flush the first-level cache at every stage.

NUMSIM_DEVICE void InitBarrier(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the cluster and to the copy engine.
NUMSIM_DEVICE void PublishBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
}

// Arrives at a barrier whose phase ends only after the copy engine has delivered `bytes` bytes.
NUMSIM_DEVICE void ArriveExpecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives at the barrier with the same offset in block `block` of the cluster.
NUMSIM_DEVICE void ArriveAt(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}

// Waits until the barrier's phase of that parity has ended.
NUMSIM_DEVICE void WaitFor(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// --- Clusters of blocks.

NUMSIM_DEVICE uint32_t BlockInCluster() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

NUMSIM_DEVICE void SynchroniseCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

// --- The copy engine.

// Copies a box of a two-dimensional tensor map to address `shared` in every block of `blocks` (one
// bit per block) and reports the bytes to the barrier at address `barrier` in each of them. x is
// the coordinate along the contiguous dimension.
NUMSIM_DEVICE void CopyRowsTo(
    uint16_t blocks, uint32_t shared, const CUtensorMap* map, int x, int y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared),
      "l"(map),
      "r"(x),
      "r"(y),
      "r"(barrier),
      "h"(blocks)
      : "memory");
}

// Does what CopyRowsTo does with a five-dimensional map, at coordinates x, 0, 0, 0, y.
NUMSIM_DEVICE void CopyColumnsTo(
    uint16_t blocks, uint32_t shared, const CUtensorMap* map, int x, int y, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %6, %6, %6, %3}], [%4], %5;" ::"r"(shared),
      "l"(map),
      "r"(x),
      "r"(y),
      "r"(barrier),
      "h"(blocks),
      "r"(0)
      : "memory");
}

NUMSIM_DEVICE void PrefetchMap(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// --- Registers. Give back or take registers until each thread of a group of 128 has kRegisters.

template <int kRegisters>
NUMSIM_DEVICE void GiveRegisters() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
NUMSIM_DEVICE void TakeRegisters() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

// --- wgmma.

// Returns the descriptor of an operand in shared memory: rows of 128 bytes along the inner
// dimension, swizzled by the copy engine (CU_TENSOR_MAP_SWIZZLE_128B). 8 rows take 1024 bytes and
// are aligned to 1024. A step along the inner dimension changes only the address.
NUMSIM_DEVICE uint64_t OperandDescriptor(uint32_t shared) {
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  constexpr uint64_t kRowsOf8 = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kUnused = uint64_t{1} << 16;
  return kSwizzle128 | kRowsOf8 | kUnused | ((shared & 0x3FFFF) >> 4);
}

NUMSIM_DEVICE void BeginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
NUMSIM_DEVICE void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kPending>
NUMSIM_DEVICE void AwaitProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// The formats of both operands. One instruction computes 64 x 128 or 64 x 256 sums of 32 products
// each and, with `accumulate`, adds them to the sums in its registers.
enum class UnitOperands { kInt8, kE4m3E4m3, kE4m3E5m2, kE5m2E4m3 };

// A thread's sum registers, and their places in the text of an instruction: 128 of 64 x 256 sums, or
// 64 of 64 x 128.
#define NUMSIM_REGISTERS_8(r, i) \
  r(d[i]), r(d[i + 1]), r(d[i + 2]), r(d[i + 3]), r(d[i + 4]), r(d[i + 5]), r(d[i + 6]), r(d[i + 7])
#define NUMSIM_REGISTERS_32(r, i)                                                        \
  NUMSIM_REGISTERS_8(r, i), NUMSIM_REGISTERS_8(r, i + 8), NUMSIM_REGISTERS_8(r, i + 16), \
      NUMSIM_REGISTERS_8(r, i + 24)
#define NUMSIM_REGISTERS_64(r) NUMSIM_REGISTERS_32(r, 0), NUMSIM_REGISTERS_32(r, 32)
#define NUMSIM_REGISTERS_128(r) \
  NUMSIM_REGISTERS_64(r), NUMSIM_REGISTERS_32(r, 64), NUMSIM_REGISTERS_32(r, 96)
#define NUMSIM_FIRST_64                                                                \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22," \
  "%23,%24,%25,%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,"   \
  "%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define NUMSIM_LAST_64                                                                        \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,"             \
  "%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,"            \
  "%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119" \
  ",%120,%121,%122,%123,%124,%125,%126,%127"
// The places of the sums, both operands' descriptors and the predicate.
#define NUMSIM_PLACES_64 "{" NUMSIM_FIRST_64 "}, %64, %65, p"
#define NUMSIM_PREDICATE_64 "%66"
#define NUMSIM_PLACES_128 "{" NUMSIM_FIRST_64 NUMSIM_LAST_64 "}, %128, %129, p"
#define NUMSIM_PREDICATE_128 "%130"

#define NUMSIM_INT_REGISTER(x) "+r"(x)
#define NUMSIM_FLOAT_REGISTER(x) "+f"(x)

// Defines a function that runs one instruction: `cols` columns, `sums` of them per thread; `more` are
// the instruction's last operands.
#define NUMSIM_MULTIPLY(name, Sum, reg, sums, cols, types, more)                            \
  NUMSIM_DEVICE void name(Sum(&d)[sums], uint64_t a, uint64_t b, int accumulate) {          \
    asm volatile(                                                                           \
        "{\n"                                                                               \
        ".reg .pred p;\n"                                                                   \
        "setp.ne.b32 p, " NUMSIM_PREDICATE_##sums                                           \
        ", 0;\n"                                                                            \
        "wgmma.mma_async.sync.aligned.m64n" cols "k32." types " " NUMSIM_PLACES_##sums more \
        ";\n"                                                                               \
        "}\n"                                                                               \
        : NUMSIM_REGISTERS_##sums(reg)                                                      \
        : "l"(a), "l"(b), "r"(accumulate));                                                 \
  }
#define NUMSIM_MULTIPLY_OF_BOTH_WIDTHS(name, Sum, reg, types, more) \
  NUMSIM_MULTIPLY(name, Sum, reg, 64, "128", types, more)           \
  NUMSIM_MULTIPLY(name, Sum, reg, 128, "256", types, more)
NUMSIM_MULTIPLY_OF_BOTH_WIDTHS(MultiplyInt8, int32_t, NUMSIM_INT_REGISTER, "s32.s8.s8", "")
NUMSIM_MULTIPLY_OF_BOTH_WIDTHS(
    MultiplyE4m3E4m3, float, NUMSIM_FLOAT_REGISTER, "f32.e4m3.e4m3", ", 1, 1")
NUMSIM_MULTIPLY_OF_BOTH_WIDTHS(
    MultiplyE4m3E5m2, float, NUMSIM_FLOAT_REGISTER, "f32.e4m3.e5m2", ", 1, 1")
NUMSIM_MULTIPLY_OF_BOTH_WIDTHS(
    MultiplyE5m2E4m3, float, NUMSIM_FLOAT_REGISTER, "f32.e5m2.e4m3", ", 1, 1")

template <UnitOperands kOperands, typename Sum, int kSums>
NUMSIM_DEVICE void Multiply(Sum (&d)[kSums], uint64_t a, uint64_t b, int accumulate) {
  if constexpr (kOperands == UnitOperands::kInt8) {
    MultiplyInt8(d, a, b, accumulate);
  } else if constexpr (kOperands == UnitOperands::kE4m3E4m3) {
    MultiplyE4m3E4m3(d, a, b, accumulate);
  } else if constexpr (kOperands == UnitOperands::kE4m3E5m2) {
    MultiplyE4m3E5m2(d, a, b, accumulate);
  } else {
    MultiplyE5m2E4m3(d, a, b, accumulate);
  }
}

#undef NUMSIM_MULTIPLY_OF_BOTH_WIDTHS
#undef NUMSIM_MULTIPLY
#undef NUMSIM_INT_REGISTER
#undef NUMSIM_FLOAT_REGISTER
#undef NUMSIM_PREDICATE_128
#undef NUMSIM_PLACES_128
#undef NUMSIM_PREDICATE_64
#undef NUMSIM_PLACES_64
#undef NUMSIM_LAST_64
#undef NUMSIM_FIRST_64
#undef NUMSIM_REGISTERS_128
#undef NUMSIM_REGISTERS_64
#undef NUMSIM_REGISTERS_32
#undef NUMSIM_REGISTERS_8

}  // namespace numsim::cuda
