// `numsim cast`: converts arrays of numbers to arrays of codes, and back.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "apps/code_array.h"
#include "apps/command.h"
#include "apps/format_text.h"
#include "apps/integer_cast.h"
#include "apps/rounding_options.h"
#include "apps/scaled_cast.h"
#include "apps/tensor_argument.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/table_file.h"
#include "numsim/io/tensor_file.h"
#include "numsim/profiles/profile.h"
#include "numsim/random/streams.h"

namespace numsim::apps {
namespace {

struct CastOptions {
  std::string in, out, format, profile;
  RoundingOptions rounding;
  ScaleOptions scales;
  bool decode = false;
  const CLI::App* sub = nullptr;

  // Returns the rounding options with the default of --overflow, which depends on the scales.
  RoundingOptions UsedRounding() const {
    RoundingOptions result = rounding;
    if (scales.Given() && sub->count("--overflow") == 0) result.overflow = "saturate";
    return result;
  }
};

// Sets codes[i] to the code of the source value with the bits bits[i]. Its random bits are those of
// element i of stream 0 of the seed.
template <typename Bits>
void EncodeByProfile(const ProfileConversion& conversion,
                     std::span<const Bits> bits,
                     uint64_t seed,
                     Array& codes) {
  constexpr size_t kGrain = 4096;
  const RandomStream stream{seed, 0};
  const int random_bits = conversion.random_bits();
  WithCodes(codes, [&](auto out) {
    using Code = typename decltype(out)::element_type;
    ParallelFor(bits.size(), kGrain, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const uint32_t random = random_bits > 0 ? RandomBits(stream, i, random_bits) : 0;
        out[i] = static_cast<Code>(conversion.Encode(bits[i], random));
      }
    });
  });
}

// Encodes an array with a profile. Converts float64 arrays from float64, and all others from
// float32; float16 is widened to float32 first.
Array EncodeFileByProfile(const CastOptions& options, const Array& in, const Format& format) {
  Array codes = ArrayLike(in, CodeType(format.spec));
  const bool wide = in.type == ElementType::kF64;
  const SourceType from = wide ? SourceType::kFloat64 : SourceType::kFloat32;
  const ProfileConversion conversion(options.profile, from, format);
  if (wide) {
    std::vector<uint64_t> bits(in.Elements());
    std::memcpy(bits.data(), in.bytes.data(), in.bytes.size());
    EncodeByProfile(conversion, std::span<const uint64_t>(bits), options.rounding.seed, codes);
  } else {
    const std::vector<float> values = ToFloat32(in, options.in);
    std::vector<uint32_t> bits(values.size());
    std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
    EncodeByProfile(conversion, std::span<const uint32_t>(bits), options.rounding.seed, codes);
  }
  return codes;
}

Array EncodeFile(const CastOptions& options, const Array& in, const FormatSpec& format) {
  const EncodePlan plan =
      MakeEncodePlan(format, options.rounding.ParsedRounding(), options.rounding.ParsedOverflow());
  const ArrayRandom random{{options.rounding.seed, 0}, 0};
  Array codes = ArrayLike(in, CodeType(format));
  if (in.type == ElementType::kF64) {  // rounded once, directly from float64
    const std::span<const double> values(in.Data<double>(), in.Elements());
    WithCodes(codes, [&](auto out) { Encode(plan, values, out, random); });
    return codes;
  }
  if (IsInteger(in.type)) {
    EncodeIntegers(plan, in, random, codes);
    return codes;
  }
  const std::vector<float> values = ToFloat32(in, options.in);
  WithCodes(codes, [&](auto out) { Encode(plan, std::span(values), out, random); });
  return codes;
}

Array DecodeFile(const CastOptions& options, Array in, const Format& format) {
  TakeAsCodes(in, format, options.in);
  return DecodedArray(in, format, options.in);
}

// Throws Error for a bad option, before any file is read.
void CheckOptions(const CastOptions& options, const Format& format) {
  CheckTensorOutput("OUT", options.out, {options.in});
  options.rounding.ParsedRounding();
  options.rounding.ParsedOverflow();
  if (options.scales.Given()) options.scales.Check(format, options.in, options.out);
  if (!options.profile.empty()) ProfileTargets(options.profile, SourceType::kFloat32);
}

// Returns the options with what a word for a format with scales, such as "mxfp4", stands for. Throws
// Error if scales are not written, or if other scales are asked for.
CastOptions WithoutWord(CastOptions options) {
  const ScaledFormat* const word = FindScaledFormat(options.format);
  if (word == nullptr) return options;
  if (!options.scales.Given()) {
    throw Error::Format("--format {}: a format with scales; --scales-out FILE is missing",
                        options.format);
  }
  const auto set = [&](const char* option, std::string& value, const std::string& meant) {
    if (options.sub->count(option) != 0 && value != meant) {
      throw Error::Format("{} {}: {} is {}", option, value, options.format, meant);
    }
    value = meant;
  };
  set("--granularity", options.scales.granularity, fmt::format("block:{}", word->block));
  set("--scale", options.scales.rule, std::string(word->rule));
  options.format = word->elements;
  return options;
}

int Cast(const CastOptions& given) {
  const CastOptions options = WithoutWord(given);
  const Format format = ParseCastFormat(options.format);
  CheckOptions(options, format);
  NamedArray in = ReadTensor(options.in);
  if (options.scales.Given()) {
    const ScaledCodes matrix =
        EncodeScaled(options.scales, options.UsedRounding(), format, in.second, options.in);
    WriteScaledCodes(matrix, in.first, options.out, options.scales);
  } else if (options.decode) {
    WriteTensor(options.out, {in.first, DecodeFile(options, std::move(in.second), format)});
  } else {
    Array codes = options.profile.empty() ? EncodeFile(options, in.second, format.spec)
                                          : EncodeFileByProfile(options, in.second, format);
    const NamedArray out = {in.first, StoredCodes(options.out, std::move(codes), format.spec)};
    WriteTensor(options.out, out, CodeMetadata(out, format.spec));
  }
  return 0;
}

}  // namespace

void AddCastCommand(Program& program) {
  auto options = std::make_shared<CastOptions>();
  CLI::App* sub = program.app.add_subcommand(
      "cast", "Round an array to the codes of a format, or decode codes to float32");
  sub->add_option("IN",
                  options->in,
                  "Input .npy or .safetensors file, or FILE.safetensors:NAME: numbers (codes with "
                  "--decode)")
      ->required()
      ->check(NotEmpty());
  sub->add_option("OUT",
                  options->out,
                  "Output file: .npy with codes as uint8, uint16 or uint32, or .safetensors with "
                  "the dtype of the format, such as F8_E4M3, if it has one (float32 with --decode)")
      ->required()
      ->check(NotEmpty());
  sub->add_option(
         "--format", options->format, FormatHelp("Format: a name, a custom format or table:FILE"))
      ->required();
  AddRoundingOptions(sub, options->rounding, "nonsaturate");
  CLI::Option* decode =
      sub->add_flag("--decode", options->decode, "Read codes and write their exact float32 values");
  CLI::Option* profile =
      sub->add_option(
             "--profile",
             options->profile,
             "Convert like this profile (see `oracle profiles`), instead of using --rounding "
             "and --overflow")
          ->check(NotEmpty())
          ->excludes(decode);
  for (const char* name : {"--rounding", "--overflow", "--sr-bits", "--sr-variant"}) {
    profile->excludes(sub->get_option(name));
  }
  AddScaleOptions(sub, options->scales)->excludes(decode)->excludes(profile);
  options->sub = sub;
  Example(
      sub,
      "numsim cast weights.npy codes.npy --format e4m3fn --rounding sr --seed 1\n"
      "  numsim cast a.npy codes.npy --format e4m3fn --granularity row --scales-out scales.npy\n"
      "  numsim cast w.npy w8.safetensors --format e4m3fn --granularity tile:128x128 --scales-out "
      "w8.safetensors");
  Choose(program, sub, [options] { return Cast(*options); });
}

}  // namespace numsim::apps
