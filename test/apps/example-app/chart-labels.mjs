/**
 * Records the labels that a page draws: how often it draws the last price, the texts, and the texts that its label covers. The label of the last
 * price is the only round rectangle of the page.
 */
export const recordLabels = (page) =>
  page.addInitScript(() => {
    window.drawn = { prices: 0, covered: [], names: [] };
    const { clearRect, fillText, roundRect } = CanvasRenderingContext2D.prototype;
    const placed = (context, left, top, right, bottom) => {
      const matrix = context.getTransform();
      const [from, to] = [matrix.transformPoint({ x: left, y: top }), matrix.transformPoint({ x: right, y: bottom })];
      return { left: from.x, top: from.y, right: to.x, bottom: to.y };
    };
    const isCovered = (one, other) =>
      one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
    const check = ({ label, texts }) => {
      if (label === undefined) return;
      window.drawn.prices += 1;
      window.drawn.names = texts.map(({ text }) => text);
      const own = texts.findIndex(({ isOwn }) => isOwn);
      const covered = texts.filter((text, index) => index !== own && isCovered(text, label)).map(({ text }) => text);
      if (covered.length > 0) window.drawn.covered.push(`${texts[own]?.text} covers ${covered.join(' and ')}`);
    };
    const drawings = new WeakMap();
    const drawing = (context) => drawings.get(context) ?? { texts: [] };
    Object.assign(CanvasRenderingContext2D.prototype, {
      clearRect(...area) {
        check(drawing(this));
        drawings.set(this, { texts: [] });
        return clearRect.apply(this, area);
      },
      roundRect(left, top, width, height, ...rest) {
        drawing(this).label = placed(this, left, top, left + width, top + height);
        return roundRect.call(this, left, top, width, height, ...rest);
      },
      fillText(text, x, y) {
        const size = this.measureText(text);
        const box = [x - size.actualBoundingBoxLeft, y - size.actualBoundingBoxAscent];
        box.push(x + size.actualBoundingBoxRight, y + size.actualBoundingBoxDescent);
        const { texts, label } = drawing(this);
        const isOwn = label !== undefined && !texts.some(({ isOwn }) => isOwn);
        if (text !== '') texts.push({ text, isOwn, ...placed(this, ...box) });
        return fillText.call(this, text, x, y);
      },
    });
  });
