package offline

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// chinese reads Chinese statements, in simplified and traditional characters. Verbs have no persons: 我 becomes
// 用户 or the speaker's name, and the rest stays.
type chinese struct {
	lead     *regexp.Regexp
	remember *regexp.Regexp
	chatter  *regexp.Regexp
	rules    []patternRule
}

// patternRule is one form of a statement.
type patternRule struct {
	pattern *regexp.Regexp
	label   memory.FactType
}

func newChinese() *chinese {
	// what may stand before 我: an expression of time, in the end with a comma
	when := `(?:(?:从|自从)?(?:今天|明天|昨天|后天|前天|後天|去年|今年|明年|前年|上周|下周|这周|上週|下週|上个月|下个月|这个月|上個月|下個月|最近|现在|現在|每天|每周|每週|周末|週末|以前|小时候|小時候|\d{4}年(?:\d+月)?(?:\d+日)?|\d+月(?:\d+[日号號])?|[下上这這]?(?:周|週|星期)[一二三四五六日天])(?:开始|以来|起|的时候)?[，,]?)?`
	adverb := `(?:也|都|还|還|真的|真|非常|很|特别|特別|最|更|比较|比較|一直|经常|經常|通常|总是|總是|从来|從來|从|從|已经|已經|刚刚|剛剛|刚|剛|最近|现在|現在|平时|平時|只|其实|其實|终于|終於|明天|昨天|去年|今年|明年|下周|上周|下个月|上个月|打算|每天|早上|晚上|[下上这這]?(?:周|週|星期)[一二三四五六日天末])*`
	rule := func(label memory.FactType, pattern string) patternRule {
		return patternRule{regexp.MustCompile(`^` + when + `我` + adverb + pattern), label}
	}
	return &chinese{
		lead:     regexp.MustCompile(`^(?:你好|您好|嗨|哈喽|大家好|早上好|晚上好|其实|其實|另外|对了|對了|顺便说一下|順便說一下|嗯|哦|好的|好吧|谢谢|謝謝|是的|不是|还有|還有|那么|那麼|因为|因為|所以|但是|不过|不過|而且)(?:[，,、！!：:]|\s)*`),
		remember: regexp.MustCompile(`^(?:请|請)?(?:你)?(?:帮我)?(?:记住|記住|记得|記得|记一下|記一下|别忘了|別忘了)[，,：:]?(.+)$`),
		chatter: regexp.MustCompile(`^我(?:想|要|需要|还想|想要)?(?:问|問|请问|請問|知道|了解|看看|请你|請你|让你|讓你|你的?帮|帮助|幫助|帮忙|幫忙|听听|走了|说|說)|` +
			`^我(?:还|還)?有(?:一?个|一?個|几个|些)?(?:小)?(?:问题|問題|疑问|疑問)|^我(?:不知道|知道了|明白|觉得|覺得|认为|認為|猜|希望你|想让你|要你|需要你|喜欢你|喜歡你|喜欢这个|喜歡這個|喜欢它|没事|沒事|还好|還好)|` +
			`^我(?:很|非常|真的|也)?(?:好|高兴|高興|抱歉|累|困|饿|餓|开心|開心|同意)(?:$|[，,了呀啊])|帮我|幫我|请你|請你|能不能|可不可以|可以[^，。]*吗|给我|給我|告诉我|告訴我|教我|你|您|^我(?:有点|有點|有些|会的|會的|是新手|没有?时间|沒有?時間|需要(?:更多|一个例子|帮))`),
		rules: []patternRule{
			rule(memory.TypeFact, `的?(?:妻子|老婆|太太|丈夫|老公|女儿|女兒|儿子|兒子|孩子|妈妈|媽媽|爸爸|父亲|父親|母亲|母親|父母|哥哥|弟弟|姐姐|妹妹|爷爷|爺爺|奶奶|家人|男朋友|女朋友|狗|猫|貓|老板|老闆|公司)[^，。]+`),
			rule(memory.TypeDecision, `(?:决定|決定|选择了|選擇了|决心)`),
			rule(memory.TypeFact, `(?:有|是)?(?:对|對)[^，。]{1,20}(?:过敏|過敏)`),
			rule(memory.TypePreference, `(?:不|不太|不怎么)?(?:喜欢|喜歡|爱|愛|讨厌|討厭|偏爱|偏愛|热爱|熱愛|迷恋|受不了)`),
			rule(memory.TypePreference, `(?:不吃|不喝|不抽烟|吃素|吃全素|是素食|是纯素|喝|吃)`),
			rule(memory.TypePreference, `(?:喜欢|喜歡|爱|愛|讨厌|討厭|想去|想要)?的?(?:颜色|食物|电影|音乐)是`),
			rule(memory.TypeIdentity, `(?:叫|名叫|姓|来自|來自|今年\d+岁|今年\d+歲|\d+岁|\d+歲|出生|生于|是[^不在说說想为為]|是一[名个個位])`),
			rule(memory.TypeIdentity, `的(?:名字|姓名|职业|職業|生日|年龄|年齡|母语|邮箱|电话|工作|国籍|國籍)(?:是|叫|在)`),
			rule(memory.TypeGoal, `(?:打算|计划|計劃|准备|準備|希望|想(?:去|学|學|成为|成為|买|買|当|當|搬|换|換|考|开|開)|要(?:去|搬|结婚|結婚|参加|參加|开始|開始|飞|飛|学|學|考|买|買)|将|會|会(?:去|在\d|搬)|正在(?:计划|準備|准备|学|學))`),
			rule(memory.TypeTodo, `(?:需要|必须|必須|得|应该|應該)`),
			rule(memory.TypeEvent, `(?:从[^，。]{1,10}(?:搬|跳槽|转学|轉學|搬家)(?:到|去|至)|报名|報名|申请了|申請了|签了|簽了)`),
			rule(memory.TypeFact, `(?:不|不用|要)?(?:上班|上课|上課|加班|休息|放假|值班)$`),
			rule(memory.TypeEvent, `(?:搬到|搬家|搬去|买了|買了|卖了|賣了|辞职|辭職|离职|離職|毕业|畢業|结婚了|結婚了|离婚|離婚|去了|去过|去過|参加了|參加了|换了|換了|生了|认识了|認識了|失去|赢了|贏了|考上|入职|入職|升职|升職|开始了?|開始了?|加入了|完成了|收养了|領養了|领养了|预订了|預訂了|订了|訂了|旅行|旅游)`),
			rule(memory.TypeFact, `(?:(?:和|跟|与|與)[^，。]{1,12}(?:住|一起|结婚|結婚|生活|工作)|住|在[^，。]{0,12}(?:公司|集团|集團|医院|醫院|学校|學校|大学|大學|银行|銀行|工厂|工廠|店|餐厅|餐廳|机构|機構|部门|部門|单位|單位)[^，。]{0,6}(?:做|当|當|任职|任職|实习|實習)|在[^，。]{1,20}(?:工作|上班|上学|上學|读书|讀書|生活|长大|長大|住|学习|學習)|有[^没沒]|养了|養了|养着|會說|会说|会|會|使用|用|学|學|从事|從事|单身|單身|已婚|患有|负责|負責|教|每天|工作|在(?:学|學|写|寫|做|读|讀))`),
			rule(memory.TypeFact, `的[^，。]{1,12}(?:是|叫|在|住|有|喜欢|喜歡|工作|今年|不|去|会|將|将)`),
			{regexp.MustCompile(`^` + when + `我们(?:已经|一致|都)?(?:决定|同意|选择|商量好)|^` + when + `我們(?:已經|一致|都)?(?:決定|同意|選擇|商量好)`), memory.TypeDecision},
			{regexp.MustCompile(`^` + when + `我[们們](?:打算|计划|計劃|准备|準備|要|将|將)`), memory.TypeGoal},
			{regexp.MustCompile(`^` + when + `我[们們](?:住|有|在|用|使用|结婚|結婚|搬|的)`), memory.TypeFact},
			{regexp.MustCompile(`^[^，。我你]{1,16}(?:在|于|於|是)(?:明天|后天|後天|下周|下週|今天|\d+月\d+[日号號]|[下这這]?(?:周|週|星期)[一二三四五六日天])`), memory.TypeEvent},
		},
	}
}

// likeness counts ideographs of text without kana, which would make it Japanese.
func (c *chinese) likeness(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			return 0
		case unicode.Is(unicode.Han, r):
			n++
		}
	}
	return 2 * n // one ideograph says more than one word in a mixed text
}

func (c *chinese) read(text string, who speaker) (statement, bool) {
	for range 4 { // greetings in a row
		text = c.lead.ReplaceAllString(text, "")
	}
	if m := c.remember.FindStringSubmatch(text); m != nil {
		if found, ok := c.match(m[1], who); ok {
			return found, true
		}
		if len([]rune(m[1])) < 5 || strings.ContainsAny(m[1], "你您") {
			return statement{}, false
		}
		return statement{c.third(m[1], who), memory.TypeFact}, true
	}
	if c.chatter.MatchString(text) || asksInChinese(text) {
		return statement{}, false
	}
	return c.match(text, who)
}

func (c *chinese) match(text string, who speaker) (statement, bool) {
	for _, rule := range c.rules {
		if rule.pattern.MatchString(text) {
			return statement{c.third(text, who), rule.label}, true
		}
	}
	return statement{}, false
}

// asksInChinese tells a question without its mark.
func asksInChinese(text string) bool {
	for _, end := range []string{"吗", "嗎", "呢", "什么", "什麼", "怎么办", "怎麼辦", "多少"} {
		if strings.HasSuffix(text, end) {
			return true
		}
	}
	return false
}

// third words a statement for its speaker. What is said of a group is quoted: nobody knows who belongs to it.
func (c *chinese) third(text string, who speaker) string {
	if strings.Contains(text, "我们") || strings.Contains(text, "我們") || strings.Contains(text, "咱") {
		return who.or("用户") + "说：" + text
	}
	return strings.ReplaceAll(text, "我", who.or("用户"))
}
