// Plugins of markdown-it for phones, keyboards and screen readers.

const heading = '<span class="visually-hidden">result</span>';

/** A cell that is longer than this, in characters, makes a table too wide for a phone. Tables of figures scroll. */
const proseLength = 40;

const roles = { table_open: 'table', tr_open: 'row', th_open: 'columnheader', td_open: 'cell' };
const groups = { thead_open: 'rowgroup', tbody_open: 'rowgroup' };

/**
 * A column without a heading gets one for screen readers, and a table of three or more columns with prose can stack its cells on a phone. There
 * each cell shows the heading of its column, and roles keep the table a table, because its elements are then blocks.
 */
export const tableHeaders = (markdown) => {
  // The rule of VitePress prints no other attribute.
  markdown.renderer.rules.table_open = (tokens, at, options, _env, self) => {
    tokens[at].attrSet('tabindex', '0');
    return self.renderToken(tokens, at, options);
  };
  markdown.core.ruler.push('table-headers', ({ tokens, Token }) => {
    tokens.forEach(({ type }, at) => {
      const cell = tokens[at + 1];
      if (type !== 'th_open' || cell.content !== '') return;
      const text = new Token('html_inline', '', 0);
      text.content = heading;
      cell.children = [text];
    });
    tokens.forEach(({ type }, at) => {
      if (type !== 'table_open') return;
      const end = tokens.findIndex((token, index) => index > at && token.type === 'table_close');
      stack(tokens.slice(at, end));
    });
  });
};

const stack = (table) => {
  const contents = (type) => table.flatMap((token, at) => (token.type === type ? [table[at + 1].content] : []));
  const labels = contents('th_open');
  if (labels.length < 3 || !contents('td_open').some((text) => text.length > proseLength)) return;
  table[0].attrSet('class', 'stacks');
  let column = 0;
  for (const token of table) {
    const role = roles[token.type] ?? groups[token.type];
    if (role) token.attrSet('role', role);
    if (token.type === 'tr_open') column = 0;
    if (token.type !== 'td_open') continue;
    token.attrSet('data-label', labels[column].replaceAll('`', ''));
    column += 1;
  }
};

const isDrawing = (token) => token.type === 'image' && token.attrGet('src').endsWith('.svg');

/** A drawing scrolls sideways on a phone, so the keyboard must reach it. */
export const scrollingDiagrams = (markdown) =>
  markdown.core.ruler.push('scrolling-diagrams', ({ tokens }) => {
    tokens.forEach(({ type, children }, at) => {
      if (type !== 'inline' || children.length !== 1 || !isDrawing(children[0])) return;
      tokens[at - 1].attrSet('class', 'diagram');
      tokens[at - 1].attrSet('tabindex', '0');
    });
  });
