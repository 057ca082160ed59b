// Writes text to the caller's buffers, and keeps exceptions inside the C interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>
#include <string_view>

#include "numsim/base/error.h"
#include "numsim/capi/numsim.h"

namespace numsim::capi {

// A caller's buffer for text. Nothing is written if the pointer is null or the size is 0.
struct TextBuffer {
  char* data;
  size_t size;
  // The function that returns the names of a list one by one. Messages end with such a list.
  std::string_view lister = {};

  // Writes the text and a final 0. A text that does not fit ends after a comma, followed by
  // "... see LISTER". If there is no lister, or no room for this, the text ends anywhere.
  void Write(std::string_view text) const noexcept {
    if (data == nullptr || size == 0) return;
    const size_t room = size - 1;
    size_t kept = std::min(text.size(), room);
    const size_t end = kOmission.size() + lister.size();
    const bool cut = kept < text.size() && !lister.empty() && end < room;
    const size_t comma = cut ? text.substr(0, room - end).rfind(", ") : std::string_view::npos;
    if (comma != std::string_view::npos) kept = comma + 2;
    Append(text.substr(0, kept), 0);
    if (comma != std::string_view::npos) {
      Append(kOmission, kept);
      Append(lister, kept + kOmission.size());
    }
  }

 private:
  static constexpr std::string_view kOmission = "... see ";

  void Append(std::string_view text, size_t at) const noexcept {
    std::memcpy(data + at, text.data(), text.size());
    data[at + text.size()] = '\0';
  }
};

// Returns body(), and converts its exceptions to a status. An Error becomes `on_error`. Writes the
// exception's text to `message`, or an empty text if there is none.
template <typename Body>
numsim_status_t CatchAll(TextBuffer message, numsim_status_t on_error, const Body& body) noexcept {
  message.Write("");
  try {
    return body();
  } catch (const Error& error) {
    message.Write(error.what());
    return on_error;
  } catch (const std::bad_alloc&) {
    message.Write("out of memory");
    return NUMSIM_ERROR_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    message.Write(error.what());
    return NUMSIM_ERROR_INTERNAL;
  } catch (...) {
    return NUMSIM_ERROR_INTERNAL;
  }
}

}  // namespace numsim::capi
