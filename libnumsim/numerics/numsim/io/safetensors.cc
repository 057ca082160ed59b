#include "numsim/io/safetensors.h"

#include <array>
#include <bit>
#include <unordered_map>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/array.h"
#include "numsim/io/input_file.h"
#include "numsim/io/internal/file_headers.h"
#include "numsim/io/internal/packed_codes.h"

namespace numsim {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // limit of the reference implementation

uint64_t ReadHeaderLength(const InputFile& file) {
  const std::string path = file.Path().string();
  if (file.Size() < kLengthBytes) {
    throw Error::Format("{}: {} bytes, too short for a .safetensors file", path, file.Size());
  }
  std::array<unsigned char, kLengthBytes> bytes{};
  file.Read(0, std::as_writable_bytes(std::span(bytes)));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{bytes[i]} << (8 * i);
  if (length > kMaxHeaderBytes) {
    throw Error::Format("{}: not a .safetensors file: header length {}, expected at most {}",
                        path,
                        length,
                        kMaxHeaderBytes);
  }
  if (length > file.Size() - kLengthBytes) {
    throw Error::Format("{}: header of {} bytes goes beyond the file's end", path, length);
  }
  return length;
}

}  // namespace

struct SafetensorsFile::State {
  explicit State(const std::filesystem::path& path) : file(path) {}

  InputFile file;
  uint64_t data_offset = 0;
  std::vector<TensorInfo> tensors;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // as in TensorRange; order of `tensors`
  std::unordered_map<std::string, size_t> index;      // from a name to its position in `tensors`
  std::vector<std::pair<std::string, std::string>> metadata;
};

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) {
  auto state = std::make_unique<State>(path);
  const uint64_t length = ReadHeaderLength(state->file);
  std::string json(length, '\0');
  state->file.Read(kLengthBytes, std::as_writable_bytes(std::span(json)));
  state->data_offset = kLengthBytes + length;

  SafetensorsHeader header =
      ParseSafetensorsHeader(json, state->file.Size() - state->data_offset, path.string());
  state->metadata = std::move(header.metadata);
  for (TensorRange& tensor : header.tensors) {
    tensor.info.type = TypeOf(tensor.info.dtype);
    state->index.emplace(tensor.info.name, state->tensors.size());
    state->ranges.emplace_back(tensor.begin, tensor.end);
    state->tensors.push_back(std::move(tensor.info));
  }
  state_ = std::move(state);
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const std::vector<TensorInfo>& SafetensorsFile::Tensors() const { return state_->tensors; }

const std::vector<std::pair<std::string, std::string>>& SafetensorsFile::Metadata() const {
  return state_->metadata;
}

Array SafetensorsFile::Read(std::string_view name) const {
  const std::string path = state_->file.Path().string();
  const auto found = state_->index.find(std::string(name));
  if (found == state_->index.end()) {
    throw Error::Format("{}: no tensor '{}'", path, Printable(name));
  }
  const TensorInfo& info = state_->tensors[found->second];
  if (!info.type) {
    throw Error::Format("{}: tensor '{}' has dtype {}, which numsim does not read",
                        path,
                        Printable(name),
                        Printable(info.dtype));
  }
  const auto [begin, end] = state_->ranges[found->second];
  Array array{*info.type, info.shape, std::vector<std::byte>(end - begin)};
  state_->file.Read(state_->data_offset + begin, array.bytes);
  const size_t bits = StoredBits(array.type);
  if (bits < 8) array.bytes = UnpackCodes(array.bytes, array.Elements(), bits);
  if constexpr (std::endian::native == std::endian::big) {
    ReverseBytesOfElements(array.bytes, ElementBytes(array.type));
  }
  return array;
}

}  // namespace numsim
