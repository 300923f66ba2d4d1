// A plugin of markdown-it: a drawing scrolls sideways on a phone, so the keyboard must reach it.
const isDrawing = (token) => token.type === 'image' && token.attrGet('src').endsWith('.svg');

export const scrollingDiagrams = (markdown) =>
  markdown.core.ruler.push('scrolling-diagrams', ({ tokens }) => {
    tokens.forEach(({ type, children }, at) => {
      if (type !== 'inline' || children.length !== 1 || !isDrawing(children[0])) return;
      tokens[at - 1].attrSet('class', 'diagram');
      tokens[at - 1].attrSet('tabindex', '0');
    });
  });
