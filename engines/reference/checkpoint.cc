// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/checkpoint.h"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <boost/json/parse.hpp>

#include "engines/reference/body.h"
#include "engines/reference/digest.h"
#include "engines/reference/names.h"

namespace pushrod::engines::reference {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::uint64_t kMostHeader = std::uint64_t{100} << 20U;
constexpr std::size_t kPiece = std::size_t{1} << 20U;

constexpr std::array<std::pair<std::string_view, DType>, 16> kTypes = {
    {{"BOOL", DType::kBool},
     {"U8", DType::kUint8},
     {"U16", DType::kUint16},
     {"U32", DType::kUint32},
     {"U64", DType::kUint64},
     {"I8", DType::kInt8},
     {"I16", DType::kInt16},
     {"I32", DType::kInt32},
     {"I64", DType::kInt64},
     {"F16", DType::kFloat16},
     {"BF16", DType::kBfloat16},
     {"F32", DType::kFloat32},
     {"F64", DType::kFloat64},
     {"F8_E4M3", DType::kFloat8E4m3fn},
     {"F8_E5M2", DType::kFloat8E5m2},
     {"F8_E8M0", DType::kFloat8E8m0fnu}}};

/// Where a tensor's bytes lie.
struct Place {
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

struct Entry {
  TensorSpec spec;
  Place place;
};

Status bad(const std::string& where, const std::string& what) {
  return {Code::kInvalidArgument, "checkpoint " + where + ": " + what};
}

Result<json::value> parseText(const std::string& where, const std::string& text) {
  json::error_code error;
  json::value value = json::parse(text, error);
  if (error) {
    return bad(where, "is not JSON: " + error.message());
  }
  return value;
}

Result<Entry> parseEntry(const std::string& file,
                         const std::string& name,
                         const json::value& value,
                         std::uint64_t dataBegin,
                         std::uint64_t dataBytes) {
  const json::object* object = value.if_object();
  const json::value* offsets = object == nullptr ? nullptr : object->if_contains("data_offsets");
  const json::value* shape = object == nullptr ? nullptr : object->if_contains("shape");
  const auto type = asString(object == nullptr ? nullptr : object->if_contains("dtype"));
  const auto* known = std::find_if(
      kTypes.begin(), kTypes.end(), [&](const auto& entry) { return type == entry.first; });
  if (offsets == nullptr || !offsets->is_array() || offsets->get_array().size() != 2 ||
      shape == nullptr || !shape->is_array() || known == kTypes.end()) {
    return bad(file, "tensor " + name + " has no usable dtype, shape and data_offsets");
  }
  Entry entry;
  entry.spec.name = name;
  entry.spec.dtype = known->second;
  for (const json::value& extent : shape->get_array()) {
    entry.spec.shape.push_back(extent.is_int64() ? extent.get_int64() : -1);
  }
  const json::value& first = offsets->get_array()[0];
  const json::value& last = offsets->get_array()[1];
  const auto count = elementCount(entry.spec.shape);
  if (!count || !first.is_int64() || !last.is_int64() || first.get_int64() < 0 ||
      last.get_int64() < first.get_int64() ||
      static_cast<std::uint64_t>(last.get_int64()) > dataBytes) {
    return bad(file, "tensor " + name + " lies outside of the file");
  }
  entry.place = {file,
                 dataBegin + static_cast<std::uint64_t>(first.get_int64()),
                 static_cast<std::uint64_t>(last.get_int64() - first.get_int64())};
  if (static_cast<std::uint64_t>(*count) != entry.place.bytes / itemSize(entry.spec.dtype) ||
      entry.place.bytes % itemSize(entry.spec.dtype) != 0) {
    return bad(file, "tensor " + name + " has another size than its dtype and shape make");
  }
  return entry;
}

Status readHeader(const std::string& file, std::vector<Entry>& entries) {
  std::error_code error;
  // Reading anything but a file may wait for ever.
  if (!fs::is_regular_file(file, error)) {
    return bad(file, "is not a regular file");
  }
  const std::uint64_t size = fs::file_size(file, error);
  std::ifstream input(file, std::ios::binary);
  std::array<unsigned char, 8> raw{};
  if (error || !input.read(reinterpret_cast<char*>(raw.data()), raw.size())) {
    return bad(file, "cannot be read");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    length |= std::uint64_t{raw.at(i)} << (8 * i);
  }
  if (length > kMostHeader || length + raw.size() > size) {
    return bad(file, "has a header longer than the file");
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  if (!input.read(text.data(), static_cast<std::streamsize>(text.size()))) {
    return bad(file, "ends inside its header");
  }
  auto header = parseText(file, text);
  if (!header.ok() || !header->is_object()) {
    return header.ok() ? bad(file, "has a header that is no object") : header.error();
  }
  for (const auto& field : header->get_object()) {
    const std::string name(field.key().data(), field.key().size());
    if (name == "__metadata__") {
      continue;
    }
    auto entry =
        parseEntry(file, name, field.value(), raw.size() + length, size - raw.size() - length);
    if (!entry.ok()) {
      return entry.error();
    }
    entries.push_back(std::move(*entry));
  }
  return {};
}

Status addBytes(const Place& place, Sha256& digest) {
  std::ifstream input(place.file, std::ios::binary);
  input.seekg(static_cast<std::streamoff>(place.offset));
  std::vector<char> piece(kPiece);
  for (std::uint64_t left = place.bytes; left > 0;) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPiece));
    if (!input.read(piece.data(), static_cast<std::streamsize>(wanted))) {
      return bad(place.file, "ended while it was read");
    }
    digest.add(piece.data(), wanted);
    left -= wanted;
  }
  return {};
}

/// The files of a folder, and which tensor belongs to which where an index says so.
struct Files {
  std::set<std::string> paths;
  std::map<std::string, std::string> index;
};

Result<Files> listFiles(const std::string& folder) {
  Files files;
  std::error_code error;
  const std::string listed = folder + "/model.safetensors.index.json";
  if (fs::exists(listed, error) && !fs::is_regular_file(listed, error)) {
    return bad(listed, "is not a regular file");
  }
  std::ifstream input(listed, std::ios::binary);
  if (input) {
    const std::string text((std::istreambuf_iterator<char>(input)), {});
    auto index = parseText(folder, text);
    if (!index.ok()) {
      return index.error();
    }
    const json::value* map =
        index->is_object() ? index->get_object().if_contains("weight_map") : nullptr;
    if (map == nullptr || !map->is_object()) {
      return bad(folder, "the index has no weight_map");
    }
    for (const auto& entry : map->get_object()) {
      const auto file = asString(&entry.value());
      if (!file || file->find('/') != std::string::npos) {
        return bad(folder, "the index names a file that is not in the folder");
      }
      const std::string path = folder + "/" + *file;
      files.paths.insert(path);
      files.index.emplace(std::string(entry.key().data(), entry.key().size()), path);
    }
    return files;
  }
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".safetensors") {
      files.paths.insert(at->path().string());
    }
  }
  if (error || files.paths.empty()) {
    return bad(folder, "has no safetensors files");
  }
  return files;
}

/// Digests of fused parameters: their parts one after another.
Status fuse(const std::vector<Entry>& entries, InitialContent& content) {
  std::map<std::string, std::map<int, const Place*>> parts;
  for (const Entry& entry : entries) {
    const NameParts split = splitName(entry.spec.name);
    if (split.fused) {
      parts[split.runtime][split.order] = &entry.place;
    }
  }
  for (const auto& [runtime, byOrder] : parts) {
    Sha256 digest;
    for (const auto& [order, place] : byOrder) {
      if (Status added = addBytes(*place, digest); !added.ok()) {
        return added;
      }
    }
    content.runtimeDigests[runtime] = digest.hex();
  }
  return {};
}

Result<InitialContent> readAll(const std::string& folder) {
  auto files = listFiles(folder);
  if (!files.ok()) {
    return files.error();
  }
  std::vector<Entry> entries;
  for (const std::string& path : files->paths) {
    if (Status read = readHeader(path, entries); !read.ok()) {
      return read;
    }
  }
  if (!files->index.empty()) {
    // The index decides which file holds a tensor.
    const auto foreign = [&](const Entry& entry) {
      const auto listed = files->index.find(entry.spec.name);
      return listed == files->index.end() || listed->second != entry.place.file;
    };
    entries.erase(std::remove_if(entries.begin(), entries.end(), foreign), entries.end());
    if (entries.size() != files->index.size()) {
      return bad(folder, "the index lists a tensor that its file does not have");
    }
  }
  InitialContent content;
  content.fixed = true;
  std::set<std::string> seen;
  for (const Entry& entry : entries) {
    if (!seen.insert(entry.spec.name).second) {
      return bad(folder, "tensor " + entry.spec.name + " is in two files");
    }
    Sha256 digest;
    if (Status added = addBytes(entry.place, digest); !added.ok()) {
      return added;
    }
    content.tensors.push_back({entry.spec, digest.hex(), nullptr});
  }
  if (Status fused = fuse(entries, content); !fused.ok()) {
    return fused;
  }
  return content;
}

}  // namespace

Result<InitialContent> readCheckpoint(const std::string& folder) {
  try {
    return readAll(folder);
  } catch (const std::exception& thrown) {
    return bad(folder, thrown.what());
  }
}

}  // namespace pushrod::engines::reference
