// Accumulation mode library by oneDNN.
#include <fmt/format.h>

#include <map>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <tuple>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/gemm/gemm.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {
namespace {

using dnnl::memory;

const dnnl::engine& Cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// The properties that oneDNN's code depends on: element type, extents, storage order, and the
// number of threads that share the work.
struct Problem {
  memory::data_type type;
  size_t rows_a, rows_b, inner;
  bool transposed_a, transposed_b;
  int threads;

  auto Key() const {
    return std::tuple(
        static_cast<int>(type), rows_a, rows_b, inner, transposed_a, transposed_b, threads);
  }
};

// Describes a rows x cols matrix that is stored row by row, or column by column.
memory::desc Description(memory::data_type type, size_t rows, size_t cols, bool by_columns) {
  const auto r = static_cast<memory::dim>(rows), c = static_cast<memory::dim>(cols);
  return {{r, c}, type, by_columns ? memory::dims{1, r} : memory::dims{c, 1}};
}

// A single row or column is stored the same either way; oneDNN is then told row by row.
template <typename Element>
bool ByColumns(const LibraryFactor<Element>& x) {
  return x.transposed && x.rows > 1 && x.inner > 1;
}

// A compiled GEMM and descriptions of the memory that it reads and writes.
struct Product {
  dnnl::matmul code;
  memory::desc a, b, out, scratchpad;
};

// Returns no value if oneDNN has no code for the problem.
std::optional<Product> Compile(const Problem& p) {
  const memory::desc a = Description(p.type, p.rows_a, p.inner, p.transposed_a);
  const memory::desc b = Description(p.type, p.inner, p.rows_b, !p.transposed_b);
  const memory::desc out =
      Description(memory::data_type::f32, p.rows_a, p.rows_b, /*by_columns=*/false);
  dnnl::primitive_attr attributes;
  attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);  // whatever the environment says
  // oneDNN's own scratchpad belongs to the thread that made the code.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc made(Cpu(), a, b, out, attributes, /*allow_empty=*/true);
#else
  const dnnl::matmul::primitive_desc made(
      dnnl::matmul::desc(a, b, out), attributes, Cpu(), /*allow_empty=*/true);
#endif
  if (!made) return std::nullopt;
  return Product{dnnl::matmul(made), a, b, out, made.scratchpad_desc()};
}

// Returns Compile(p), cached for later calls: compiling takes longer than a small GEMM.
std::optional<Product> Compiled(const Problem& p) {
  using Products = std::map<decltype(p.Key()), std::optional<Product>>;
  constexpr size_t kMost = 512;
  static std::mutex mutex;
  static Products& products = *new Products;  // outlives oneDNN's own static objects
  const std::lock_guard lock(mutex);
  const auto known = products.find(p.Key());
  if (known != products.end()) return known->second;
  if (products.size() >= kMost) products.clear();
  return products[p.Key()] = Compile(p);
}

// Returns this thread's memory for intermediate results, grown to the size of `description`.
memory Scratchpad(const memory::desc& description) {
  thread_local memory kept;
  if (!kept || kept.get_desc().get_size() < description.get_size()) {
    kept = memory(description, Cpu());
  }
  return memory(description, Cpu(), kept.get_data_handle());
}

// oneDNN wants non-const pointers even to memory that it only reads.
memory View(const memory::desc& description, const void* data) {
  return {description, Cpu(), const_cast<void*>(data)};
}

void Execute(const Product& product, const void* a, const void* b, float* out) {
  dnnl::stream stream(Cpu());
  product.code.execute(stream,
                       {{DNNL_ARG_SRC, View(product.a, a)},
                        {DNNL_ARG_WEIGHTS, View(product.b, b)},
                        {DNNL_ARG_DST, View(product.out, out)},
                        {DNNL_ARG_SCRATCHPAD, Scratchpad(product.scratchpad)}});
  stream.wait();
}

// Returns false if oneDNN has no code for this GEMM.
template <typename Element>
bool Multiply(memory::data_type type,
              const LibraryFactor<Element>& a,
              const LibraryFactor<Element>& b,
              float* out) {
  bool done = false;
  CallLibrary([&](int threads) {
    const std::optional<Product> product =
        Compiled({type, a.rows, b.rows, a.inner, ByColumns(a), ByColumns(b), threads});
    if (product) Execute(*product, a.data, b.data, out);
    done = product.has_value();
  });
  return done;
}

}  // namespace

// With AMX bf16 is 1.4 to 5 times as fast as float32, narrowing of both operands included. The bf16
// instruction of AVX-512 is not used: it is slower than float32 (86 against 160 GFLOP/s at 1024^3 on
// one thread) and loses subnormals.
bool MultipliesBf16() {
  static const bool has = [] {
    constexpr int kAmx = dnnl_cpu_isa_avx512_core_amx;  // a bit set
    return (static_cast<int>(dnnl::get_effective_cpu_isa()) & kAmx) == kAmx;
  }();
  return has;
}

void LibraryProduct(const LibraryFactor<float>& a, const LibraryFactor<float>& b, float* out) {
  const bool done = Multiply(memory::data_type::f32, a, b, out);
  NUMSIM_CHECK(done, "oneDNN has no float32 product {} x {} x {}", a.rows, b.rows, a.inner);
}

void LibraryProduct(const LibraryFactor<uint16_t>& a,
                    const LibraryFactor<uint16_t>& b,
                    float* out) {
  if (MultipliesBf16() && Multiply(memory::data_type::bf16, a, b, out)) return;
  WidenedProduct(a, b, out);
}

const char* GemmLibrary() {
  static const std::string name = [] {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
  }();
  return name.c_str();
}

}  // namespace numsim
