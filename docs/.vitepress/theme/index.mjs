import DefaultTheme from 'vitepress/theme';
import { defineAsyncComponent } from 'vue';
import ThePromises from './ThePromises.vue';
import './style.css';

export default {
  extends: DefaultTheme,
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
