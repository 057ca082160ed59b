// Calls on arrays in the memory of a CUDA device, in the stream that the caller names. The Python
// files (../numsim/_device.py) bring arrays as DLPack capsules, made for that stream. Every call
// returns before its work is done, and nothing is copied to the host.
#include <algorithm>
#include <array>
#include <memory>

#include "libnumsim/python/src/bindings.h"
#include "libnumsim/python/src/quantize_options.h"
#include "numsim/backend/device_context.h"
#include "numsim/cast/cast_device.h"
#include "numsim/gemm.h"
#include "numsim/quantize/quantize_device.h"
#include "numsim/update.h"

namespace numsim::python {
namespace {

using DeviceInput = nb::ndarray<nb::ro, nb::c_contig, nb::device::cuda>;
using DeviceOutput = nb::ndarray<nb::c_contig, nb::device::cuda>;

template <typename T>
DeviceSpan<const T> On(const DeviceInput& array) {
  return {static_cast<const T*>(array.data()), array.size()};
}
template <typename T>
DeviceSpan<T> On(const DeviceOutput& array) {
  return {static_cast<T*>(array.data()), array.size()};
}

template <typename Array>
void RequireFloat(const char* call, const Array& array) {
  if (array.dtype() != nb::dtype<float>()) RefuseType(call);
}

bool IsDouble(const DeviceInput& array) { return array.dtype() == nb::dtype<double>(); }

// Returns the caller's random bits, one word per element; empty: those of the stream.
DeviceSpan<const uint32_t> WordsOf(const std::optional<DeviceInput>& words) {
  if (!words) return {};
  if (words->dtype() != nb::dtype<uint32_t>()) RefuseType("random bits");
  return On<uint32_t>(*words);
}

template <typename Array>
MatrixShape ShapeOf(const Array& array) {
  if (array.ndim() != 2) throw Error::Format("expected 2 dimensions, found {}", array.ndim());
  return {array.shape(0), array.shape(1)};
}

MatrixSpan<const float> Floats(const DeviceInput& array, DeviceContext& context) {
  return {static_cast<const float*>(array.data()), ShapeOf(array), Place(context)};
}
MatrixSpan<float> Floats(const DeviceOutput& array, DeviceContext& context) {
  return {static_cast<float*>(array.data()), ShapeOf(array), Place(context)};
}

// Returns an array of float32, or one of codes of bf16 (uint16), as a matrix of numbers.
MatrixSpan<const float> Numbers(const char* call,
                                const DeviceInput& array,
                                DeviceContext& context) {
  const bool bf16 = array.dtype() == nb::dtype<uint16_t>();
  if (!bf16) RequireFloat(call, array);
  const Element element = bf16 ? Element::kBfloat16 : Element::kFloat32;
  return FloatMatrix(array.data(), element, ShapeOf(array), Place(context));
}

void RoundOnDevice(DeviceContext& context,
                   const EncodePlan& plan,
                   const DeviceInput& in,
                   const DeviceOutput& out,
                   const ArrayRandom& random,
                   const std::optional<DeviceInput>& random_bits) {
  const bool wide = IsDouble(in);
  if (!wide) RequireFloat("round", in);
  if (in.dtype() != out.dtype()) RefuseType("round");
  const DeviceSpan<const uint32_t> words = WordsOf(random_bits);
  if constexpr (NUMSIM_HAVE_CUDA) {
    const ArrayCall call;
    DeviceStream& stream = context.stream();
    if (wide) {
      RoundEach(plan, On<double>(in), On<double>(out), stream, random, words);
    } else if (!words.empty()) {
      RoundEach(plan, On<float>(in), On<float>(out), stream, random, words);
    } else {
      FakeQuantize(plan, On<float>(in), On<float>(out), stream, random);
    }
  }
}

void EncodeOnDevice(DeviceContext& context,
                    const EncodePlan& plan,
                    const DeviceInput& in,
                    const DeviceOutput& codes,
                    const ArrayRandom& random,
                    const std::optional<DeviceInput>& random_bits) {
  const bool wide = IsDouble(in);
  if (!wide) RequireFloat("encode", in);
  const DeviceSpan<const uint32_t> words = WordsOf(random_bits);
  WithCodeType("encode", codes.dtype(), [&]<typename Code>(Code) {
    if constexpr (NUMSIM_HAVE_CUDA) {
      const ArrayCall call;
      DeviceStream& stream = context.stream();
      if (wide) {
        EncodeEach(plan, On<double>(in), On<Code>(codes), stream, random, words);
      } else if (!words.empty()) {
        EncodeEach(plan, On<float>(in), On<Code>(codes), stream, random, words);
      } else {
        Encode(plan, On<float>(in), On<Code>(codes), stream, random);
      }
    }
  });
}

void DecodeOnDevice(DeviceContext& context,
                    const FormatSpec& format,
                    const DeviceInput& codes,
                    const DeviceOutput& out) {
  RequireFloat("decode", out);
  WithCodeType("decode", codes.dtype(), [&]<typename Code>(Code) {
    if constexpr (NUMSIM_HAVE_CUDA) {
      const ArrayCall call;
      Decode(format, On<Code>(codes), On<float>(out), context.stream());
    }
  });
}

// Writes codes of plan.format and the scales of the layout.
void QuantizeThere(DeviceContext& context,
                   const DeviceInput& x,
                   const EncodePlan& plan,
                   std::string_view layout,
                   std::string_view rule,
                   const ArrayRandom& random,
                   const DeviceOutput& codes,
                   const DeviceOutput& scales,
                   const std::optional<DeviceOutput>& tensor_scale) {
  RequireFloat("quantize", scales);
  const QuantizeOptions options = OptionsOf(plan, layout, rule, random);
  const auto in = Numbers("quantize", x, context);
  if (codes.nbytes() != in.Elements() * static_cast<size_t>(plan.format.StorageBytes())) {
    RefuseType("quantize");
  }
  if constexpr (NUMSIM_HAVE_CUDA) {
    const ArrayCall call;
    const DeviceSpan<float> tensor = tensor_scale ? On<float>(*tensor_scale) : DeviceSpan<float>();
    QuantizeScaled(in, options, codes.data(), nullptr, On<float>(scales), tensor);
  }
}

// Writes codes of plan.format under one scale, whose inverse is given.
void QuantizeUnderThere(DeviceContext& context,
                        const DeviceInput& x,
                        const EncodePlan& plan,
                        const DeviceInput& inv_scale,
                        const ArrayRandom& random,
                        const DeviceOutput& codes) {
  RequireFloat("quantize", inv_scale);
  const auto in = Numbers("quantize", x, context);
  if constexpr (NUMSIM_HAVE_CUDA) {
    const ArrayCall call;
    Quantize(plan, in, ScaleLayout{}, On<float>(inv_scale), codes.data(), nullptr, random);
  }
}

// Writes codes of plan.format under a delayed scale, and the scale, and records the maximum.
void QuantizeDelayedThere(DeviceContext& context,
                          const DeviceInput& x,
                          const EncodePlan& plan,
                          DelayedScale& delayed,
                          const ArrayRandom& random,
                          const DeviceOutput& codes,
                          const DeviceOutput& scale) {
  RequireFloat("quantize", scale);
  const QuantizeOptions options = OptionsOf(plan, "tensor", "none", random);
  const auto in = Numbers("quantize", x, context);
  if constexpr (NUMSIM_HAVE_CUDA) {
    const ArrayCall call;
    QuantizeDelayed(delayed, in, options, codes.data(), nullptr, On<float>(scale));
  }
}

void DequantizeThere(DeviceContext& context,
                     const FormatSpec& format,
                     const DeviceInput& codes,
                     std::string_view layout,
                     const DeviceInput& scales,
                     const DeviceOutput& out) {
  RequireFloat("dequantize", out);
  const ScaleLayout groups = ParseScaleLayout(layout);
  if constexpr (NUMSIM_HAVE_CUDA) {
    const ArrayCall call;
    Dequantize(format, codes.data(), groups, On<float>(scales), Floats(out, context));
  }
}

// An operand on the device: values of float32, or codes with or without scales.
struct DeviceOperand {
  FormatSpec format = {};
  DeviceInput array;
  ScaleLayout layout = {};
  std::optional<DeviceInput> scales;
  bool columns = false;  // the vectors of the product are columns

  GemmOperand At(DeviceContext& context) const {
    const MatrixShape shape = ShapeOf(array);
    const bool is_float = array.dtype() == nb::dtype<float>();
    if (is_float) return AsOperand(Floats(array, context), columns);
    const size_t size = array.nbytes();
    const Place place(context);
    if (scales) {
      return AsOperand(QuantizedSpan{format,
                                     shape,
                                     layout,
                                     {static_cast<const uint8_t*>(array.data()), {1, size}, place},
                                     {On<float>(*scales).data(), {1, scales->size()}, place}},
                       columns);
    }
    GemmOperand operand{.format = format, .transposed = columns, .place = place};
    operand.rows = columns ? shape.cols : shape.rows;
    operand.inner = columns ? shape.rows : shape.cols;
    if (format.StorageBytes() == 1) {
      operand.codes8 = {static_cast<const uint8_t*>(array.data()), array.size()};
    } else {
      operand.codes16 = {static_cast<const uint16_t*>(array.data()), array.size()};
    }
    return operand;
  }
};

void GemmThere(DeviceContext& context,
               const DeviceOperand& a,
               const DeviceOperand& b,
               std::string_view mode,
               bool any_operands,
               const DeviceOutput& out) {
  RequireFloat("matmul", out);
  const AccumulationMode accumulation = ParseAccumulationMode(mode);
  const GemmOperand left = a.At(context), right = b.At(context);
  if (!any_operands) {
    CheckOperands(mode, left.format, right.format, "any_operands=True allows it");
  }
  const ArrayCall call;
  Gemm(left, right, accumulation, Floats(out, context));
}

// Returns a copy of the state in the memory of the context, or the state itself if it is there. From
// another context it goes through the host.
nb::object StateAt(nb::handle context, nb::handle state) {
  const Place place(nb::cast<DeviceContext&>(context));
  const auto& held = nb::cast<const UpdateState&>(state);
  const bool there = held.values.place() == place && held.words.place() == place;
  if (there) return nb::borrow(state);
  return nb::cast(held.CopiedTo(Place()).CopiedTo(place));
}

UpdateOutcome ApplyThere(DeviceContext& context,
                         const UpdateRule& rule,
                         const FormatSpec& format,
                         size_t rows,
                         size_t cols,
                         const DeviceInput& weights,
                         const DeviceInput& update,
                         const DeviceOutput& out,
                         UpdateState& state,
                         const ArrayRandom& random,
                         float learning_rate,
                         float weight_decay) {
  RequireFloat("update", weights);
  RequireFloat("update", update);
  RequireFloat("update", out);
  const MatrixShape shape{rows, cols};
  const Place place(context);
  const auto matrix = [&](const DeviceInput& array) {
    return MatrixSpan<const float>(static_cast<const float*>(array.data()), shape, place);
  };
  const WeightUpdate step{.format = format,
                          .weights = matrix(weights),
                          .update = matrix(update),
                          .learning_rate = learning_rate,
                          .weight_decay = weight_decay};
  const ArrayCall call;
  return ApplyUpdate(rule,
                     step,
                     random.stream,
                     state,
                     MatrixSpan<float>(static_cast<float*>(out.data()), shape, place));
}

// Returns memory of the device as an object with __dlpack__, for libraries whose arrays nobody may
// write to.
nb::object Memory(const std::vector<size_t>& shape, std::string_view type) {
  struct Name {
    std::string_view name;
    nb::dlpack::dtype type;
  };
  const std::array<Name, 5> names = {{{"float32", nb::dtype<float>()},
                                      {"float64", nb::dtype<double>()},
                                      {"uint8", nb::dtype<uint8_t>()},
                                      {"uint16", nb::dtype<uint16_t>()},
                                      {"uint32", nb::dtype<uint32_t>()}}};
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const Name& n) { return n.name == type; });
  if (found == names.end()) RefuseType("device memory");
  size_t bytes = found->type.bits / 8;
  for (const size_t n : shape) bytes *= n;
  if constexpr (NUMSIM_HAVE_CUDA) {
    auto memory = std::make_unique<DeviceArray<uint8_t>>(std::max<size_t>(bytes, 1));
    void* const data = memory->data();
    const nb::capsule owner(memory.release(),
                            [](void* p) noexcept { delete static_cast<DeviceArray<uint8_t>*>(p); });
    return nb::cast(nb::ndarray<nb::array_api, nb::device::cuda>(
        data, shape.size(), shape.data(), owner, nullptr, found->type, nb::device::cuda::value));
  }
  throw Error::Format("{} bytes of device memory: this build has no GPU kernels", bytes);
}

void BindDeviceUpdates(nb::module_& m) {
  // The state keeps its context alive.
  m.def("update_state_at", &StateAt, nb::keep_alive<0, 1>(), nb::arg("context"), nb::arg("state"));
  m.def("device_apply_update",
        &ApplyThere,
        nb::arg("context"),
        nb::arg("rule"),
        nb::arg("format"),
        nb::arg("rows"),
        nb::arg("cols"),
        nb::arg("weights").noconvert(),
        nb::arg("update").noconvert(),
        nb::arg("out").noconvert(),
        nb::arg("state"),
        nb::arg("random"),
        nb::arg("learning_rate"),
        nb::arg("weight_decay"));
}

void BindDeviceMatrices(nb::module_& m) {
  m.def("device_quantize_delayed",
        &QuantizeDelayedThere,
        nb::arg("context"),
        nb::arg("x").noconvert(),
        nb::arg("plan"),
        nb::arg("delayed"),
        nb::arg("random"),
        nb::arg("codes").noconvert(),
        nb::arg("scale").noconvert());
  m.def("device_quantize",
        &QuantizeThere,
        nb::arg("context"),
        nb::arg("x").noconvert(),
        nb::arg("plan"),
        nb::arg("layout"),
        nb::arg("rule"),
        nb::arg("random"),
        nb::arg("codes").noconvert(),
        nb::arg("scales").noconvert(),
        nb::arg("tensor_scale").noconvert() = nb::none());
  m.def("device_quantize_under",
        &QuantizeUnderThere,
        nb::arg("context"),
        nb::arg("x").noconvert(),
        nb::arg("plan"),
        nb::arg("inv_scale").noconvert(),
        nb::arg("random"),
        nb::arg("codes").noconvert());
  m.def("device_dequantize",
        &DequantizeThere,
        nb::arg("context"),
        nb::arg("format"),
        nb::arg("codes").noconvert(),
        nb::arg("layout"),
        nb::arg("scales").noconvert(),
        nb::arg("out").noconvert());
  nb::class_<DeviceOperand>(m, "DeviceOperand")
      .def(
          "__init__",
          [](DeviceOperand* self,
             const FormatSpec& format,
             DeviceInput array,
             bool columns,
             std::string_view layout,
             std::optional<DeviceInput> scales) {
            new (self) DeviceOperand{
                format, std::move(array), ParseScaleLayout(layout), std::move(scales), columns};
          },
          nb::arg("format"),
          nb::arg("array").noconvert(),
          nb::arg("columns"),
          nb::arg("layout") = "tensor",
          nb::arg("scales").noconvert() = nb::none());
  // Writes A B^T, as `gemm` does.
  m.def("device_gemm",
        &GemmThere,
        nb::arg("context"),
        nb::arg("a"),
        nb::arg("b"),
        nb::arg("mode"),
        nb::arg("any_operands"),
        nb::arg("out").noconvert());
}

}  // namespace

void BindDevice(nb::module_& m) {
  // Returns why no device can be used, or an empty text.
  m.def("device_unavailable", &DeviceUnavailable);
  // The work of one thread in one stream, given by the address of its cudaStream_t; 0 is the
  // default stream.
  nb::class_<DeviceContext>(m, "DeviceContext")
      .def(
          "__init__",
          [](DeviceContext* self, uintptr_t stream) {
            new (self) DeviceContext(reinterpret_cast<void*>(stream));
          },
          nb::arg("stream"));
  m.def("device_round",
        &RoundOnDevice,
        nb::arg("context"),
        nb::arg("plan"),
        nb::arg("x").noconvert(),
        nb::arg("out").noconvert(),
        nb::arg("random"),
        nb::arg("random_bits").noconvert() = nb::none());
  m.def("device_memory", &Memory, nb::arg("shape"), nb::arg("dtype"));
  m.def(
      "device_wait",
      [](DeviceContext& context) {
        const ArrayCall call;
        if constexpr (NUMSIM_HAVE_CUDA) context.stream().Wait();
      },
      nb::arg("context"));
  m.def("device_encode",
        &EncodeOnDevice,
        nb::arg("context"),
        nb::arg("plan"),
        nb::arg("x").noconvert(),
        nb::arg("codes").noconvert(),
        nb::arg("random"),
        nb::arg("random_bits").noconvert() = nb::none());
  m.def("device_decode",
        &DecodeOnDevice,
        nb::arg("context"),
        nb::arg("format"),
        nb::arg("codes").noconvert(),
        nb::arg("out").noconvert());
  BindDeviceMatrices(m);
  BindDeviceUpdates(m);
}

}  // namespace numsim::python
