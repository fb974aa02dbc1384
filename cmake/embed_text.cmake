# Files as text: writes a source that defines a function which returns a table of (name, text).
# Arguments: -DOUT=file.cpp -DFILES=a.cuh,b.cuh -DROOT=folder that names are relative to
# -DINCLUDE=header -DNAMESPACE=a::b -DTYPE=Entry -DFUNCTION=name
string(REPLACE "," ";" files "${FILES}")
set(source "#include \"${INCLUDE}\"\n\nnamespace ${NAMESPACE} {\n\n")
string(APPEND source "std::span<const ${TYPE}> ${FUNCTION}() {\n")
string(APPEND source "  static const ${TYPE} kFiles[] = {\n")
foreach(path IN LISTS files)
  file(RELATIVE_PATH name ${ROOT} ${path})
  file(READ ${path} text)
  string(APPEND source "      {\"${name}\", R\"embedded(${text})embedded\"},\n")
endforeach()
string(APPEND source "  };\n  return kFiles;\n}\n\n}  // namespace ${NAMESPACE}\n")
file(WRITE ${OUT} "${source}")
