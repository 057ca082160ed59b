// `numsim cast`: arrays of numbers to arrays of codes, and back.
#include <fmt/format.h>

#include <filesystem>

#include "apps/command.h"
#include "apps/rounding_options.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/npy.h"
#include "numsim/io/tensor_file.h"
#include "numsim/kernels/cast.h"

namespace numsim::apps {
namespace {

struct Options {
  std::string in, out, format;
  RoundingOptions rounding;
  bool decode = false;
};

ElementType CodeType(const FormatSpec& format) {
  switch (format.StorageBytes()) {
    case 1:
      return ElementType::kU8;
    case 2:
      return ElementType::kU16;
    default:
      return ElementType::kU32;
  }
}

Array ArrayLike(const Array& other, ElementType type) {
  Array array;
  array.type = type;
  array.shape = other.shape;
  array.bytes.resize(other.Elements() * ElementBytes(type));
  return array;
}

// Calls work(span of codes) with the element type of the array.
template <typename Work>
void WithCodes(Array& codes, Work work) {
  const size_t n = codes.Elements();
  switch (codes.type) {
    case ElementType::kU8:
      return work(std::span(codes.Data<uint8_t>(), n));
    case ElementType::kU16:
      return work(std::span(codes.Data<uint16_t>(), n));
    default:
      return work(std::span(codes.Data<uint32_t>(), n));
  }
}

Array EncodeFile(const Options& options, const Array& in, const FormatSpec& format) {
  const EncodePlan plan =
      MakeEncodePlan(format, options.rounding.ParsedRounding(), options.rounding.ParsedOverflow());
  const ArrayRandom random{{options.rounding.seed, 0}, 0};
  Array codes = ArrayLike(in, CodeType(format));
  if (in.type == ElementType::kF64) {  // rounded once, from float64
    std::vector<uint32_t> wide(in.Elements());
    Encode(plan, std::span(in.Data<double>(), in.Elements()), std::span(wide), random);
    WithCodes(codes, [&](auto out) { std::copy(wide.begin(), wide.end(), out.begin()); });
    return codes;
  }
  const std::vector<float> values = ToFloat32(in, options.in);
  WithCodes(codes, [&](auto out) { Encode(plan, std::span(values), out, random); });
  return codes;
}

Array DecodeFile(const Options& options, Array in, const Format& format) {
  if (in.type != CodeType(format.spec)) {
    throw Error::Format("{}: elements are {}, codes of {} are {}",
                        options.in,
                        Name(in.type),
                        format.name,
                        Name(CodeType(format.spec)));
  }
  Array values = ArrayLike(in, ElementType::kF32);
  WithCodes(in, [&](auto codes) {
    for (size_t i = 0; i < codes.size(); ++i) {
      if (codes[i] <= format.spec.CodeMask()) continue;
      throw Error::Format("{}: element {} is {:#x}, beyond the {} bits of {}",
                          options.in,
                          i,
                          codes[i],
                          format.spec.Bits(),
                          format.name);
    }
    using Code = typename decltype(codes)::element_type;
    Decode(format.spec,
           std::span<const Code>(codes),
           std::span(values.Data<float>(), values.Elements()));
  });
  return values;
}

int Cast(const Options& options) {
  const Format format = ParseFormat(options.format);
  options.rounding.ParsedRounding();  // a bad option is reported before any file is read
  options.rounding.ParsedOverflow();
  Array in = ReadNpy(options.in);
  const Array out = options.decode ? DecodeFile(options, std::move(in), format)
                                   : EncodeFile(options, in, format.spec);
  WriteNpy(options.out, out);
  return 0;
}

}  // namespace

void AddCastCommand(Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = program.app.add_subcommand(
      "cast", "Round a .npy array to the codes of a format, or decode codes to float32");
  sub->add_option("IN", options->in, "float32, float16 or float64 .npy (codes with --decode)")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT", options->out, "uint8, uint16 or uint32 codes (float32 with --decode)")
      ->required()
      ->check(NotEmpty());
  sub->add_option("--format", options->format, "Format: a name or a custom format")->required();
  AddRoundingOptions(sub, options->rounding, "nonsaturate");
  sub->add_flag("--decode", options->decode, "Read codes, write their exact float32 values");
  Example(sub, "numsim cast weights.npy codes.npy --format e4m3fn --rounding sr --seed 1");
  Choose(program, sub, [options] { return Cast(*options); });
}

}  // namespace numsim::apps
