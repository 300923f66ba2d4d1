// A plugin of markdown-it: a column without a heading gets one for screen readers.
const heading = '<span class="visually-hidden">result</span>';

export const tableHeaders = (markdown) =>
  markdown.core.ruler.push('table-headers', ({ tokens, Token }) => {
    tokens.forEach(({ type }, at) => {
      const cell = tokens[at + 1];
      if (type !== 'th_open' || cell.content !== '') return;
      const text = new Token('html_inline', '', 0);
      text.content = heading;
      cell.children = [text];
    });
  });
