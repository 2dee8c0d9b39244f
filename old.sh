ulimit -v 3000000
cd /tmp/rd/t
export PYTHONPATH=/tmp/base/python
for c in "solve /dev/zero" "import nobody" "solve nobody" "power fit bomb.yaml"; do timeout 20 /tmp/base/.venv/bin/python -m routecast $c 2>&1 | tail -1 | cut -c1-150; echo "$c: rc ${PIPESTATUS[0]}"; done
