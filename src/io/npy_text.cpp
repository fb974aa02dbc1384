#include "io/npy_text.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/string_pool.h"
#include "base/utf8.h"

namespace redfuser::io {
namespace {

std::u32string characters_of(const std::string& bytes, bool swapped) {
  std::u32string characters(bytes.size() / sizeof(char32_t), U'\0');
  std::memcpy(characters.data(), bytes.data(), bytes.size());
  if (!swapped) return characters;
  for (char32_t& c : characters) c = __builtin_bswap32(c);
  return characters;
}

std::u32string checked_characters(const Tensor& tensor, int64_t i) {
  std::optional<std::u32string> text = from_utf8(tensor.text(i));
  if (!text || text->ends_with(U'\0')) {
    user_error(
        "NumPy files hold no text that is not UTF-8 or ends in a zero byte (element {}); a folder "
        "(of .pb files) does",
        i);
  }
  return *std::move(text);
}

template <typename Text>
void strip_zeros(Text& text) {
  while (!text.empty() && text.back() == 0) text.pop_back();
}

}  // namespace

void read_texts(ByteSource& source, const NpyHeader& header, const std::string& what,
                Tensor& texts) {
  std::string bytes(header.width, '\0');
  for (int64_t i = 0; i < texts.size(); ++i) {
    source.read(bytes.data(), bytes.size());
    if (!header.wide) {
      std::string text = bytes;
      strip_zeros(text);
      texts.as<uint64_t>()[i] = number_of_text(text);
      continue;
    }
    std::u32string characters = characters_of(bytes, header.swapped);
    strip_zeros(characters);
    const std::optional<std::string> text = to_utf8(characters);
    if (!text) user_error("{}: element {} has a character that Unicode does not have", what, i);
    texts.as<uint64_t>()[i] = number_of_text(*text);
  }
}

Tensor wide_texts(const Tensor& tensor) {
  size_t longest = 1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    longest = std::max(longest, checked_characters(tensor, i).size());
  }
  Dims dims = tensor.dims();
  dims.push_back(static_cast<int64_t>(longest));
  Tensor wide(DType::UInt32, dims);
  std::fill_n(wide.as<uint32_t>(), wide.size(), 0u);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const std::u32string characters = checked_characters(tensor, i);
    std::copy(characters.begin(), characters.end(),
              wide.as<uint32_t>() + i * static_cast<int64_t>(longest));
  }
  return wide;
}

}  // namespace redfuser::io
