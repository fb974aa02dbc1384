# The licences of what is linked in, as the distribution has them.
foreach(package IN ITEMS libprotobuf-dev libre2-dev libeigen3-dev nlohmann-json3-dev libfmt-dev
                         libcli11-dev zlib1g-dev)
  install(FILES /usr/share/doc/${package}/copyright RENAME ${package}
          DESTINATION ${SKBUILD_METADATA_DIR}/licenses OPTIONAL)
endforeach()
install(FILES ${ONNX_LICENSE} RENAME onnx DESTINATION ${SKBUILD_METADATA_DIR}/licenses)
