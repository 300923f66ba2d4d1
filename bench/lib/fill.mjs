// Text between two marks of a page, for the scripts that write parts of the guides.

/** Replaces the text between two marks. Throws if they are missing. */
export const fillBetween = (text, open, close, part) => {
  const from = text.indexOf(open);
  const to = text.indexOf(close, from);
  if (from === -1 || to === -1) throw new Error(`The text has no ${open} … ${close}`);
  return `${text.slice(0, from + open.length)}\n\n${part}\n\n${text.slice(to)}`;
};
