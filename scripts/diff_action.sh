#!/usr/bin/env bash
# What action.yml runs: compare NETWORK with BASELINE on DATA, write the summary of the step, fail where THRESHOLDS say so.
set -uo pipefail
read -r -a thresholds <<< "${THRESHOLDS:-}"
summary=${GITHUB_STEP_SUMMARY:-/dev/stdout}
output=${GITHUB_OUTPUT:-/dev/null}
if [ ! -e "$BASELINE" ]; then
  likewise record "$NETWORK" --data "$DATA" --out "$BASELINE" | tee -a "$summary" || exit 1
  echo "verdict=recorded" >> "$output"
  exit 0
fi
markdown=$(likewise diff "$BASELINE" "$NETWORK" --data "$DATA" ${thresholds[@]+"${thresholds[@]}"} --markdown)
code=$?
printf '%s\n' "$markdown" >> "$summary"
if [ -n "$markdown" ]; then
  verdict=$(printf '%s\n' "$markdown" | head -n 1 | sed 's/.*: //')
  echo "verdict=$verdict" >> "$output"
  if [ ${#thresholds[@]} -eq 0 ] && { [ "$verdict" = changed ] || [ "$verdict" = different ]; }; then
    code=1
  fi
fi
exit "$code"
