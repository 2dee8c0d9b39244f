// The page's figures by name.
const plots = {};
for (const figure of figures) {
  const holder = document.getElementById(`plot-${figure.name}`);
  if (holder) plots[figure.name] = new Plot(holder, figure);
}
