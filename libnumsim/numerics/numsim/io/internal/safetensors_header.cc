#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/array.h"
#include "numsim/io/internal/file_headers.h"

namespace numsim {
namespace {

using nlohmann::json;

// Handles the parser's events one by one. A tree in memory would hide repeated keys, and a
// malicious file could make it arbitrarily deep; here the first unexpected event ends the parse.
class Events final : public nlohmann::json_sax<json> {
 public:
  explicit Events(std::string_view file) : file_(file) {}

  SafetensorsHeader Take() { return std::move(header_); }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kTensor;
      fields_ = {};
      header_.tensors.emplace_back();
      header_.tensors.back().info.name = key_;
    } else {
      FailValue("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    key_ = key;
    if (place_ == Place::kTop && !names_.insert(key).second) {
      throw Error::Format("{}: '{}' appears twice", file_, Printable(key));
    }
    if (place_ == Place::kMetadata && !metadata_keys_.insert(key).second) {
      throw Error::Format("{}: __metadata__ '{}' appears twice", file_, Printable(key));
    }
    if (place_ == Place::kTensor) BeginField();
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      for (size_t i = 0; i < kFields.size(); ++i) {
        if (!fields_[i]) throw Error::Format("{}: {} is missing", TensorText(), kFields[i]);
      }
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") FailValue("a list");
    place_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    if (place_ == Place::kOffsets) numbers_in_offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && numbers_in_offsets_ != 2) FailValue("too few numbers");
    place_ = Place::kTensor;
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace_back(key_, text);
    } else if (place_ == Place::kTensor && key_ == "dtype") {
      header_.tensors.back().info.dtype = text;
    } else {
      FailValue("a string");
    }
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ == Place::kShape) {
      header_.tensors.back().info.shape.push_back(value);
    } else if (place_ == Place::kOffsets && numbers_in_offsets_ < 2) {
      TensorRange& tensor = header_.tensors.back();
      (numbers_in_offsets_++ == 0 ? tensor.begin : tensor.end) = value;
    } else {
      FailValue("a number");
    }
    return true;
  }

  bool number_integer(int64_t) override { FailValue("a negative number"); }
  bool number_float(double, const std::string&) override {
    FailValue("a number that is not an integer below 2^64");
  }
  bool null() override { FailValue("null"); }
  bool boolean(bool) override { FailValue("a boolean"); }
  bool binary(json::binary_t&) override { FailValue("binary data"); }

  bool parse_error(size_t position, const std::string&, const json::exception&) override {
    throw Error::Format("{}: the header is not valid JSON at byte {}", file_, position);
  }

 private:
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };
  static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};

  void BeginField() {
    const auto field = std::find(kFields.begin(), kFields.end(), key_);
    if (field == kFields.end()) {
      throw Error::Format("{}: unknown field '{}'", TensorText(), Printable(key_));
    }
    bool& seen = fields_[static_cast<size_t>(field - kFields.begin())];
    if (seen) throw Error::Format("{}: {} appears twice", TensorText(), key_);
    seen = true;
  }

  std::string TensorText() const {
    return fmt::format("{}: tensor '{}'", file_, Printable(header_.tensors.back().info.name));
  }

  // Throws Error for a value of the wrong kind at the current place.
  [[noreturn]] void FailValue(std::string_view found) const {
    switch (place_) {
      case Place::kStart:
      case Place::kEnd:
        throw Error::Format("{}: the header is {}, expected an object", file_, found);
      case Place::kTop:
        throw Error::Format("{}: '{}' is {}, expected an object", file_, Printable(key_), found);
      case Place::kMetadata:
        throw Error::Format(
            "{}: __metadata__ '{}' is {}, expected a string", file_, Printable(key_), found);
      case Place::kTensor:
      case Place::kShape:
      case Place::kOffsets:
        break;
    }
    throw Error::Format(
        "{}: {} has {}, expected a string for dtype, a list of integers for shape and "
        "two integers for data_offsets",
        TensorText(),
        key_,
        found);
  }

  std::string_view file_;
  Place place_ = Place::kStart;
  std::string key_;                // the last key
  std::array<bool, 3> fields_{};   // fields of the current tensor that were seen
  size_t numbers_in_offsets_ = 0;  // of the current tensor
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> metadata_keys_;
  SafetensorsHeader header_;
};

struct TypeDtype {
  ElementType type;
  std::string_view dtype;
};
constexpr std::array kTypeDtypes = {
    TypeDtype{ElementType::kF64, "F64"},
    TypeDtype{ElementType::kF32, "F32"},
    TypeDtype{ElementType::kF16, "F16"},
    TypeDtype{ElementType::kBf16, "BF16"},
    TypeDtype{ElementType::kF8E4M3, "F8_E4M3"},
    TypeDtype{ElementType::kF8E5M2, "F8_E5M2"},
    TypeDtype{ElementType::kF8E4M3Fnuz, "F8_E4M3FNUZ"},
    TypeDtype{ElementType::kF8E5M2Fnuz, "F8_E5M2FNUZ"},
    TypeDtype{ElementType::kF8E8M0, "F8_E8M0"},
    TypeDtype{ElementType::kF6E2M3, "F6_E2M3"},
    TypeDtype{ElementType::kF6E3M2, "F6_E3M2"},
    TypeDtype{ElementType::kF4E2M1, "F4"},
    TypeDtype{ElementType::kI8, "I8"},
    TypeDtype{ElementType::kU8, "U8"},
    TypeDtype{ElementType::kU16, "U16"},
    TypeDtype{ElementType::kU32, "U32"},
    TypeDtype{ElementType::kU64, "U64"},
    TypeDtype{ElementType::kI16, "I16"},
    TypeDtype{ElementType::kI32, "I32"},
    TypeDtype{ElementType::kI64, "I64"},
    TypeDtype{ElementType::kBool, "BOOL"},
};
constexpr std::string_view kComplex = "C64";  // not read, but its length is checked as well

// Returns the bits of an element in the file, or nullopt for a dtype that is not known.
std::optional<size_t> BitsOf(std::string_view dtype) {
  if (dtype == kComplex) return 64;
  const std::optional<ElementType> type = TypeOf(dtype);
  return type ? std::optional(StoredBits(*type)) : std::nullopt;
}

// Throws Error unless the range has the length that dtype and shape require. Accepts any length for
// a dtype that is not in the list; such a tensor cannot be read.
void CheckLength(const TensorRange& tensor, const std::string& where) {
  const std::optional<size_t> known = BitsOf(tensor.info.dtype);
  const size_t bits = known.value_or(1);
  const auto elements = CheckedElements(tensor.info.shape, bits);
  const std::string shape = Printable(ShapeToString(tensor.info.shape));
  if (!elements) throw Error::Format("{}: shape {} is too large", where, shape);
  if (!known) return;
  const uint64_t expected_bits = uint64_t{*elements} * bits;
  if (expected_bits % 8 != 0 || expected_bits / 8 != tensor.end - tensor.begin) {
    throw Error::Format("{}: data_offsets span {} bytes, expected {} for {} {}",
                        where,
                        tensor.end - tensor.begin,
                        static_cast<double>(expected_bits) / 8,
                        tensor.info.dtype,
                        shape);
  }
}

// Sorts the tensors by their ranges, which must tile [0, data_bytes).
void OrderAndCheck(std::vector<TensorRange>& tensors, uint64_t data_bytes, std::string_view file) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorRange& a, const TensorRange& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (const TensorRange& tensor : tensors) {
    const std::string where = fmt::format("{}: tensor '{}'", file, Printable(tensor.info.name));
    if (tensor.begin > tensor.end || tensor.end > data_bytes) {
      throw Error::Format("{}: data_offsets [{}, {}] do not lie within the file's {} bytes of data",
                          where,
                          tensor.begin,
                          tensor.end,
                          data_bytes);
    }
    if (tensor.begin != covered) {
      throw Error::Format(
          "{}: data_offsets begin at {}, expected {}, the end of the previous tensor",
          where,
          tensor.begin,
          covered);
    }
    CheckLength(tensor, where);
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw Error::Format("{}: tensors cover {} bytes of data, found {}", file, covered, data_bytes);
  }
}

}  // namespace

std::optional<ElementType> TypeOf(std::string_view dtype) {
  for (const TypeDtype& known : kTypeDtypes) {
    if (known.dtype == dtype) return known.type;
  }
  return std::nullopt;
}

std::string_view DtypeOf(ElementType type) {
  for (const TypeDtype& known : kTypeDtypes) {
    if (known.type == type) return known.dtype;
  }
  throw Error::Format(".safetensors has no dtype for {}", ToString(type));
}

SafetensorsHeader ParseSafetensorsHeader(std::string_view text,
                                         uint64_t data_bytes,
                                         std::string_view file) {
  // The format does not allow leading white space or a byte order mark, which the parser would
  // skip.
  if (text.empty() || text[0] != '{') {
    throw Error::Format("{}: the header does not begin with '{{'", file);
  }
  Events events(file);
  // The SAX parser is not recursive, so deep nesting cannot overflow the stack.
  json::sax_parse(text, &events);
  SafetensorsHeader header = events.Take();
  OrderAndCheck(header.tensors, data_bytes, file);
  return header;
}

}  // namespace numsim
