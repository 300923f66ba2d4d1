import DefaultTheme from 'vitepress/theme';
import { onContentUpdated } from 'vitepress';
import { defineAsyncComponent, nextTick } from 'vue';
import ThePromises from './ThePromises.vue';
import './style.css';

/** Scrolls the sidebar to the page. */
const showInSidebar = () =>
  document
    .querySelector('.VPSidebar .is-active.is-link, .VPSidebar .has-active > .item')
    ?.scrollIntoView({ block: 'center' });

export default {
  extends: DefaultTheme,
  setup: () => onContentUpdated(() => nextTick(showInSidebar)),
  enhanceApp: ({ app }) =>
    app
      .component('ThePromises', ThePromises)
      // Only their page loads the operators.
      .component(
        'LiveWindows',
        defineAsyncComponent(() => import('./LiveWindows.vue')),
      )
      .component(
        'LiveBackoff',
        defineAsyncComponent(() => import('./LiveBackoff.vue')),
      ),
};
