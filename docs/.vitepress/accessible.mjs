// Plugins of markdown-it for phones, keyboards and screen readers.

/** A cell that is longer than this, in characters, makes a table too wide for a phone. Tables of figures scroll. */
const proseLength = 40;

const roles = {
  ...{ table_open: 'table', thead_open: 'rowgroup', tbody_open: 'rowgroup' },
  ...{ tr_open: 'row', th_open: 'columnheader', td_open: 'cell' },
};

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
      if (type === 'th_open' && cell.content === '') {
        const content = '<span class="visually-hidden">result</span>';
        cell.children = [Object.assign(new Token('html_inline', '', 0), { content })];
      }
      if (type !== 'table_open') return;
      stack(tokens.slice(at, at + tokens.slice(at).findIndex((token) => token.type === 'table_close')));
    });
  });
};

const stack = (table) => {
  const contents = (type) => table.flatMap((token, at) => (token.type === type ? [table[at + 1].content] : []));
  const labels = contents('th_open');
  if (labels.length < 3 || !contents('td_open').some((text) => text.length > proseLength)) return;
  table[0].attrSet('class', 'stacks');
  for (const token of table) if (roles[token.type]) token.attrSet('role', roles[token.type]);
  const cells = table.filter(({ type }) => type === 'td_open');
  cells.forEach((cell, n) => cell.attrSet('data-label', labels[n % labels.length].replaceAll('`', '')));
};

/** A drawing scrolls sideways on a phone, so the keyboard must reach it. */
export const scrollingDiagrams = (markdown) =>
  markdown.core.ruler.push('scrolling-diagrams', ({ tokens }) => {
    tokens.forEach(({ children }, at) => {
      const [only, ...others] = children ?? [];
      if (only?.type !== 'image' || others.length > 0 || !only.attrGet('src').endsWith('.svg')) return;
      tokens[at - 1].attrSet('class', 'diagram');
      tokens[at - 1].attrSet('tabindex', '0');
    });
  });
