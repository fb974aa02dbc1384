# Device headers as text: writes a source that defines device_headers(), a table of (name, text).
# Arguments: -DOUT=file.cpp -DHEADERS=a.cuh,b.cuh
string(REPLACE "," ";" headers "${HEADERS}")
set(source "#include \"codegen/core/device_text.h\"\n\nnamespace redfuser::codegen {\n\n")
string(APPEND source "std::span<const DeviceHeader> device_headers() {\n")
string(APPEND source "  static const DeviceHeader kHeaders[] = {\n")
foreach(header IN LISTS headers)
  get_filename_component(name ${header} NAME_WE)
  file(READ ${header} text)
  string(APPEND source "      {\"${name}\", R\"device(${text})device\"},\n")
endforeach()
string(APPEND source "  };\n  return kHeaders;\n}\n\n}  // namespace redfuser::codegen\n")
file(WRITE ${OUT} "${source}")
