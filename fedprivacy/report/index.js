// Sorts the table by the column of a pressed heading; rows without a value stay last.
const body = document.querySelector("tbody");
const headings = [...document.querySelectorAll("thead th")];
const keyOf = (row, column) => {
  const cell = row.children[column];
  if (cell.dataset.key !== undefined) return Number(cell.dataset.key);
  return cell.textContent === "-" ? null : cell.textContent;
};
headings.forEach((heading, column) => heading.querySelector("button").addEventListener("click", () => {
  const falling = heading.ariaSort === "ascending";
  headings.forEach((other) => { other.ariaSort = "none"; });
  heading.ariaSort = falling ? "descending" : "ascending";
  const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return (a < b ? -1 : a > b ? 1 : 0) * (falling ? -1 : 1);
  });
  body.append(...rows.map(([, row]) => row));
}));
