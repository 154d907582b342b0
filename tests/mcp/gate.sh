read -r name
echo run >> "$name.runs"
while [ ! -e "$name.open" ]; do sleep 0.02; done
printf 'answer of %s' "$name"
