#include "bench/peers.h"

#if NUMSIM_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace numsim::bench {

#if NUMSIM_HAVE_ONEDNN

namespace {

using dnnl::memory;

dnnl::matmul::primitive_desc Describe(const dnnl::engine& engine,
                                      const memory::desc& a,
                                      const memory::desc& b,
                                      const memory::desc& out) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, a, b, out};
#else
  return {dnnl::matmul::desc(a, b, out), engine};
#endif
}

}  // namespace

std::function<void()> OneDnnInt8Product(const int8_t* a, const int8_t* b, size_t n, int32_t* out) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto size = static_cast<memory::dim>(n);
  const memory::dims extents = {size, size};
  const memory::desc of_a(extents, memory::data_type::s8, memory::format_tag::ab);
  const memory::desc of_b(extents, memory::data_type::s8, memory::format_tag::ba);
  const memory::desc of_out(extents, memory::data_type::s32, memory::format_tag::ab);
  const dnnl::matmul product(Describe(engine, of_a, of_b, of_out));
  const memory from_a(of_a, engine, const_cast<int8_t*>(a));
  const memory from_b(of_b, engine, const_cast<int8_t*>(b));
  const memory to(of_out, engine, out);
  dnnl::stream stream(engine);
  return [=]() mutable {
    product.execute(stream,
                    {{DNNL_ARG_SRC, from_a}, {DNNL_ARG_WEIGHTS, from_b}, {DNNL_ARG_DST, to}});
    stream.wait();
  };
}

#else

std::function<void()> OneDnnInt8Product(const int8_t*, const int8_t*, size_t, int32_t*) {
  return {};
}

#endif

}  // namespace numsim::bench
