const ink = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const dress = layout => {
  const text = ink("--ink"), grid = ink("--rule"), card = ink("--card");
  const axis = old => ({ ...old, color: text, gridcolor: grid, linecolor: grid, tickcolor: grid });
  return {
    ...layout,
    font: { family: ink("--sans"), size: 12.5, color: text },
    hoverlabel: { bgcolor: card, bordercolor: grid, font: { color: text } },
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
  };
};

const plots = [...document.querySelectorAll(".plot")];

const show = () => plots.forEach(plot => {
  const { data, layout } = figures[plot.dataset.figure];
  const narrow = plot.clientWidth < 560;
  const fitted = dress(narrow ? { ...layout, margin: { ...layout.margin, l: 50, r: 14 } } : layout);
  Plotly.react(plot, data, fitted, { responsive: true, displaylogo: false, displayModeBar: false });
});

show();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("beforeprint", show);
addEventListener("afterprint", show);
