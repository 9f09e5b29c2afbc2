# An image that serves one model from a mounted folder; the root file system may be read-only:
#
#   docker build -t xtrellis .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     -p 127.0.0.1:8000:8000 -v "$PWD/models:/models:ro" xtrellis
#
# serves models/model.xtrellis at http://127.0.0.1:8000. After replacing the file:
#
#   docker kill --signal HUP CONTAINER
#
# Mount the folder, not the file: a mounted file stays the old one when it is replaced.
FROM python:3.12-slim

COPY pyproject.toml README.md LICENSE /build/
COPY src /build/src
RUN pip install --no-cache-dir '/build[serve]' && rm -r /build

# Compile the kernels now, into the package, for the processor of the machine that builds the image.
# On another kind of processor they are compiled at startup into /tmp, which takes some seconds.
RUN python -m xtrellis.serving.compile_kernels

ENV PYTHONDONTWRITEBYTECODE=1
RUN useradd --system --no-create-home xtrellis
USER xtrellis
EXPOSE 8000
# Listen on every address of the container; docker's -p decides who can reach it.
ENTRYPOINT ["xtrellis", "serve", "--host", "0.0.0.0"]
CMD ["/models/model.xtrellis"]
HEALTHCHECK --start-period=60s CMD ["python", "-c", \
  "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=5)"]
