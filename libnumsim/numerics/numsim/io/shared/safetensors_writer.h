// Writes .safetensors files [safetensors].
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"

namespace numsim {

// Writes the tensors and metadata, replacing the file atomically (see atomic_file.h).
// SafetensorsFile reads everything. Data start at a multiple of 8 bytes and are
// ordered by descending element size, then as given, so that every tensor is aligned in a
// memory-mapped file. The same arguments give the same bytes. Requires array bytes that match type
// and shape, distinct names other than "__metadata__", and distinct metadata keys. Throws Error
// naming the file if it cannot be written, the name or metadata entry that is not UTF-8, or a tensor
// of 4 or 6 bits per code that does not fill its last byte.
void WriteSafetensors(const std::filesystem::path& path,
                      std::span<const std::pair<std::string, Array>> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata = {});

// Writes the same bytes to `file`, a new AtomicFile for `path`, and leaves Commit to the caller.
void AppendSafetensors(const std::filesystem::path& path,
                       std::span<const std::pair<std::string, Array>> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata,
                       AtomicFile& file);

}  // namespace numsim
