// A table as CSV (RFC 4180) that a spreadsheet opens as text and never as a formula.

const RISKY = /^[=+\-@\t\r]/;

function cell(value) {
  if (typeof value === "number") return String(value);
  const text = String(value ?? "").toWellFormed(), safe = RISKY.test(text) ? `'${text}` : text;
  return /["',;\t\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// With the byte order mark by which spreadsheets recognise UTF-8.
export function csvOf(rows) {
  return `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

export function download(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
